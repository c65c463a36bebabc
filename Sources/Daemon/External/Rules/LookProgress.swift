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
