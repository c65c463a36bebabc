import Lifecycle
import Linux
import Synchronization

/// Which process a look reads just now. Reading a process may wait without limit: its command line is in its memory,
/// whose lock a system call of that process may hold (a mapped file of a dead server). Such a process is passed over by
/// later looks. The look's thread writes it, the loop reads it.
final class LookProgress: Sendable {
  private let process = Mutex<ProcessIdentity?>(nil)

  /// nil: none, or the look has ended.
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

/// Processes that hold up a look, each until that look continues.
struct UnansweringProcesses {
  private var looks: [ProcessIdentity: LookProgress] = [:]

  var identities: Set<ProcessIdentity> { Set(looks.keys) }

  /// A look took too long. Returns the process that holds it up; nil: none does.
  mutating func add(_ progress: LookProgress) -> ProcessIdentity? {
    guard let process = progress.reading else { return nil }
    looks[process] = progress
    return process
  }

  mutating func removeAnswered() {
    looks = looks.filter { process, progress in progress.reading == process }
  }
}

/// The wait for a look, which ends early when the look hangs: one process that doesn't answer must not hold up the
/// adoption of all others for as long as a look at all of them may take, and often there are several, as with a dead
/// file server. Belongs to the loop's thread.
final class LookWait {
  /// Reading one process takes less than a millisecond; the look's thread may wait for a processor meanwhile.
  static let patience = Duration.seconds(2)

  private let timers: any Timers
  private let progress: LookProgress
  private var then: ((RuleLook.Outcome?) -> Void)?
  private var timer: LoopToken?

  /// - Parameter then: is called once, with the first outcome; nil: the look takes too long.
  init(
    for progress: LookProgress, _ timers: any Timers, then: @escaping (RuleLook.Outcome?) -> Void
  ) {
    self.timers = timers
    self.progress = progress
    self.then = then
    check(last: nil)
  }

  func end(_ outcome: RuleLook.Outcome?) {
    if let timer { timers.cancel(timer) }
    timer = nil
    let then = then
    self.then = nil
    then?(outcome)
  }

  private func check(last: ProcessIdentity?) {
    let process = progress.reading
    if let process, process == last { return end(nil) }
    timer = timers.after(Self.patience) { [self] in check(last: process) }
  }
}
