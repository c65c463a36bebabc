import Synchronization

@testable import Daemon

/// The log lines of a component. They may be added on any thread.
final class LoggedLines: Sendable {
  private let lines = Mutex<[String]>([])

  var all: [String] { lines.withLock { $0 } }

  var log: @Sendable (DaemonLog.Priority, String) -> Void {
    { [self] priority, text in lines.withLock { $0.append("\(priority): \(text)") } }
  }
}
