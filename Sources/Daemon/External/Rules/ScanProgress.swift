import Linux
import Synchronization

/// The process that a scan reads now. Reading a process may wait without limit: its command line is
/// in its memory, whose lock a system call of that process may hold (for a mapped file of a dead
/// server). Later scans pass over such a process. The scan's thread writes this, and the event loop
/// reads it.
final class ScanProgress: Sendable {
  private let process = Mutex<ProcessIdentity?>(nil)

  /// The process that is being read; nil if there is none or the scan has ended.
  var reading: ProcessIdentity? { process.withLock { $0 } }

  func reading<Value>(_ identity: ProcessIdentity, _ body: () -> Value) -> Value {
    let outer = process.withLock { process in
      defer { process = identity }
      return process
    }
    defer { process.withLock { $0 = outer } }
    return body()
  }
}

/// Waits for a scan, and ends early if the scan hangs. A process that doesn't answer mustn't delay
/// the adoption of all others for as long as a whole scan may take. Often there are several, as
/// with a dead file server. It belongs to the event loop's thread.
final class ScanWait {
  /// How long one process may take. Reading it takes less than a millisecond, but the scan's thread
  /// may wait for a processor meanwhile.
  static let timeout = Duration.seconds(2)

  private let progress: ScanProgress
  private var then: ((RuleScan.Outcome?) -> Void)?
  private let pause: TimedOperation

  /// - Parameter then: called once, with the first outcome, or with nil if the scan takes too long.
  init(
    for progress: ScanProgress, _ timers: any Timers, then: @escaping (RuleScan.Outcome?) -> Void
  ) {
    pause = TimedOperation(timers)
    self.progress = progress
    self.then = then
    check(last: nil)
  }

  func end(_ outcome: RuleScan.Outcome?) {
    pause.cancel()
    let then = then
    self.then = nil
    then?(outcome)
  }

  private func check(last: ProcessIdentity?) {
    let process = progress.reading
    if let process, process == last { return end(nil) }
    pause.wait(Self.timeout) { [self] in check(last: process) }
  }
}
