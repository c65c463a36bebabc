import Control
import Synchronization

/// The connection over which events arrive. Its calls wait, so they run on a thread of
/// `BlockingPool`.
final class EventLink: Sendable {
  private let path: String
  private let isNamed: Bool
  private let client = Mutex<ControlClient?>(nil)

  init(path: String, isNamed: Bool) {
    self.path = path
    self.isNamed = isNamed
  }

  /// Returns the events since the last call, after waiting for at most `timeout`. The result is
  /// nil if no daemon answers.
  func next(timeout: Duration = .milliseconds(500)) -> [EventRecord]? {
    client.withLock { client in
      do throws(ControlError) {
        if client == nil {
          var made = try ControlClient(connectingTo: path, isNamed: isNamed)
          let id = try made.send(.events) { $0.follow = true }
          _ = try made.response(to: id, timeout: .seconds(5))
          client = consume made
        }
        var events: [EventRecord] = []
        // The first event is waited for, and others that have arrived with it aren't.
        while events.count < 100,
          let event = try client?.nextEvent(within: events.isEmpty ? timeout : .zero)
        {
          events.append(event)
        }
        return events
      } catch {
        // The poll of the daemon reports the reason (`DaemonLink`).
        client = nil
        return nil
      }
    }
  }

  func close() { client.withLock { $0 = nil } }
}
