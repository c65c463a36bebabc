import Control
import NIOPosix
import Synchronization

/// The daemon's stream of events. Its calls wait, so they run on a thread of their own.
final class DaemonEvents: Sendable {
  private let path: String
  private let isNamed: Bool
  private let client = Mutex<ControlClient?>(nil)
  private let pool = NIOThreadPool(numberOfThreads: 1)

  /// - Parameter isNamed: True if the user has named the socket, as for `ControlClient`.
  init(path: String, isNamed: Bool) {
    self.path = path
    self.isNamed = isNamed
  }

  /// Follows events until the task is cancelled.
  func follow(_ happened: @Sendable (EventRecord) async -> Void) async {
    pool.start()
    while !Task.isCancelled {
      // The pool runs until the end of this function.
      let records = try? await pool.runIfActive { self.next() }
      if let records = records ?? nil {
        for record in records { await happened(record) }
      } else {
        // The watch reports why the daemon doesn't answer. If the task is cancelled, the loop ends.
        try? await Task.sleep(for: .seconds(1))
      }
    }
    // Nothing waits for the thread's end.
    pool.shutdownGracefully { _ in }
  }

  /// Returns the events since the last call, after waiting for at most `timeout`. The result is
  /// nil if no daemon answers.
  private func next(timeout: Duration = .milliseconds(500)) -> [EventRecord]? {
    client.withLock { client in
      do throws(ControlError) {
        if client == nil {
          var made = try ControlClient(connectingTo: path, isNamed: isNamed)
          let id = try made.send(.events) { $0.follow = true }
          _ = try made.response(to: id, timeout: .seconds(5))
          client = consume made
        }
        var events: [EventRecord] = []
        // The first event is waited for; others that have arrived with it are read as well.
        while events.count < 100,
          let event = try client?.nextEvent(within: events.isEmpty ? timeout : .zero)
        {
          events.append(event)
        }
        return events
      } catch {
        client = nil
        return nil
      }
    }
  }
}
