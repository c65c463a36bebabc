import Control
import Linux

/// The resources that the probes share: a test process, a thread that traces, a cgroup and a
/// directory. Each is created when it is first used, and released by `end()`.
final class Examination {
  let stateDirectory: String
  let socket: String
  private let tracer = WorkQueue(name: "dormouse-doctor")
  /// The test process. It has started, and waits for input.
  private(set) lazy var child = Result {
    let child = try ProbeChild(ProbeChild.echo)
    guard try child.answers() else { throw ProbeFailure("/bin/sh was started and does not answer") }
    return child
  }
  private(set) lazy var group = Result { try ProbeGroup() }
  /// The directory that the probe of the state directory has created.
  var directory: BorrowedDirectory?
  /// True if the probe of tracing has succeeded.
  var traces = false
  /// True if the probe of the freezer has succeeded.
  var freezes = false

  init(stateDirectory: String, socket: String) {
    self.stateDirectory = stateDirectory
    self.socket = socket
  }

  /// Runs `body` on the thread that traces (ptrace(2)).
  func tracing<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) throws -> Value {
    try tracer.perform { Result(catching: body) }.get()
  }

  /// Seizes a process, with all of its threads, while `body` runs.
  func seizing<Value: Sendable>(
    _ pid: Int32, _ body: @escaping @Sendable (TraceSession) throws -> Value
  ) throws -> Value {
    try tracing {
      let session = try TraceSession.seize(pid: pid)
      defer { session.detach() }
      return try body(session)
    }
  }

  func end() {
    if case .success(let child) = child { child.end() }
    if case .success(let group) = group { group.end() }
    directory?.end()
  }
}
