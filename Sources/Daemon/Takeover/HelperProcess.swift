import Linux
import Synchronization

/// A process beside the daemon that is started when it is first needed, and again when it has been killed. From any
/// thread that may wait.
final class HelperProcess<Process: Sendable>: Sendable {
  private let current = Mutex<Process?>(nil)
  private let start: @Sendable () throws -> Process
  private let hasEnded: @Sendable (Process) -> Bool

  /// - Parameter start: returns when the process's program runs.
  init(
    start: @escaping @Sendable () throws -> Process,
    hasEnded: @escaping @Sendable (Process) -> Bool
  ) {
    self.start = start
    self.hasEnded = hasEnded
  }

  /// Calls one of them, or neither where the process still runs.
  func startWhereMissing(then use: (Process) -> Void, refusal: (any Error) -> Void) {
    current.withLock { current in
      if let current, !hasEnded(current) { return }
      do {
        let new = try start()
        current = new
        use(new)
      } catch { refusal(error) }
    }
  }
}

/// The program of which this is a process, also when its file has been replaced or removed since.
let ownExecutable = "/proc/self/exe"
