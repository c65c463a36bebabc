import Control
import Synchronization

/// The connection over which events come. Its calls wait; they run on a thread of `BlockingPool`.
final class EventLink: Sendable {
  private let path: String
  private let isNamed: Bool
  private let client = Mutex<ControlClient?>(nil)

  init(path: String, isNamed: Bool) {
    self.path = path
    self.isNamed = isNamed
  }

  /// What has happened since the last call, after up to `patience`. nil: no daemon answers.
  func next(patience: Duration = .milliseconds(500)) -> [EventRecord]? {
    client.withLock { client in
      do throws(ControlError) {
        if client == nil {
          var made = try ControlClient(connectingTo: path, isNamed: isNamed)
          let id = try made.send(.events, follow: true)
          _ = try made.response(to: id, timeout: .seconds(5))
          client = consume made
        }
        var events: [EventRecord] = []
        // The first one is waited for, those that have come with it are not.
        while events.count < 100,
          let event = try client?.nextEvent(within: events.isEmpty ? patience : .zero)
        {
          events.append(event)
        }
        return events
      } catch {
        // The look at the daemon reports why (`DaemonLink`).
        client = nil
        return nil
      }
    }
  }

  func close() { client.withLock { $0 = nil } }
}
