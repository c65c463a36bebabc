import Glibc
import Linux
import Supervision
import Synchronization
import TestSupport

/// A worker of a test with all its sockets. It ends with the test.
final class TestWorker {
  private static let count = Atomic(0)
  let scratch: Scratch
  let notify: NotifySocket
  let watch: PressureWatch
  let process: WorkerProcess
  var log: String { process.plan.logPath }

  init(
    _ command: String..., name: String? = nil, environment: [String: String] = [:],
    cgroup: WorkerCgroup? = nil, umask: UInt32? = nil
  ) throws {
    scratch = try Scratch()
    // Each worker has a name of its own: jobs about one worker are done one after the other.
    let name = name ?? "test-\(Self.count.add(1, ordering: .relaxed).newValue)"
    notify = try NotifySocket.create(in: scratch.path, name: name)
    watch = try PressureWatch(path: "\(scratch.path)/watch")
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    var plan = LaunchPlan(
      name: name, command: command, directory: scratch.path,
      environment: ["PATH": path].merging(environment) { $1 }, cgroup: cgroup,
      logPath: "\(scratch.path)/log", notifySocket: notify.path, pressureWatch: watch.path)
    plan.umask = umask
    process = try WorkerProcess.launch(plan)
  }

  deinit {
    try? process.killAll()
    _ = try? pollDescriptor(process.pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(60)))
    _ = try? process.reap()
  }

  func waitForOutput(_ text: String) throws {
    let isFound = try eventually { try readText(self.log).contains(text) }
    if !isFound { throw TestFailure("no \(text) in the log: \(try readText(log))") }
  }

  func waitForExit() throws -> WorkerExit? {
    guard try pollDescriptor(process.pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(60)))
    else { throw TestFailure("still runs after 60 s") }
    return try process.reap()
  }

  /// Returns the worker's messages when there are `count`.
  func messages(_ count: Int) throws -> [NotifyMessage] {
    var all: [NotifyMessage] = []
    let deadline = Deadline(in: .seconds(60))
    while all.count < count {
      guard try pollDescriptor(notify.descriptor.raw, for: POLLIN, until: deadline) else {
        throw TestFailure("only \(all) within 60 s")
      }
      all += try notify.receive { self.process.owns($0) }
    }
    return all
  }
}

extension SideProgram {
  /// Does what an event loop does, until the program is over or in a wanted phase.
  func follow(until isReached: (Phase) -> Bool = { _ in false }) throws {
    let deadline = Deadline(in: .seconds(60))
    while let descriptor, !isReached(phase) {
      guard try pollDescriptor(descriptor.raw, for: POLLIN, until: deadline) else {
        throw TestFailure("it is still \(phase) after 60 s")
      }
      proceed()
    }
  }
}

/// The result of `body`. It fails if `body` takes longer than the limit, even if it never returns.
func within<Value: Sendable>(
  _ limit: Duration, _ body: @escaping @Sendable () -> Value
) throws -> Value {
  let result = LateResult<Value>()
  let thread = Thread.start(name: "test") { _ = result.set(body()) }
  guard thread else { throw TestFailure("no thread") }
  var value: Value?
  let isDone = try eventually(within: limit) {
    value = result.consume()
    return value != nil
  }
  guard isDone, let value else { throw TestFailure("it takes longer than \(limit)") }
  return value
}
