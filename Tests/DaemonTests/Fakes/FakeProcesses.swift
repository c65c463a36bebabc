import Glibc
import Hibernation
import Linux
import Supervision
import Synchronization
import TestSupport

@testable import Daemon

/// Processes that are in the state that a test sets.
final class FakeProcesses: Processes {
  struct State {
    var children: [Int32] = []
    var anyChildIsUnclaimed = false
    var running: Set<Int32> = []
    var reaped: [Int32] = []
    var orphans: [ProcessStat] = []
    var environments: [Int32: [String]] = [:]
    /// Processes that become orphans as soon as the process with this pid has ended.
    var childrenOf: [Int32: [Int32]] = [:]
    var refusals: [Int32: Int32] = [:]
    var killed: [Int32] = []
    /// Each kill is followed by a new orphan.
    var forks = false
    /// Programs that have a port open and don't belong to a worker.
    var holders: [UInt16: PortHolder] = [:]
    /// The pids in the workers' cgroups.
    var groups: [String: [Int32]] = [:]
    /// The pids that have a log open, by the path of the log.
    var logs: [String: [Int32]] = [:]
    var askedLogs: [String] = []
    var forbidsStrangers = false
    /// Recorded workers whose processes have ended.
    var ended: Set<String> = []
    // The outcomes of `recover` and `end`, by worker.
    var failures: [String: HibernationError] = [:]
    var restored: UInt64 = 0
    var unkillable: Set<String> = []
    /// What was done to workers of a daemon that has ended.
    var recoveries: [String] = []
    var expected: [ImageExpectation] = []
    /// The signals by which workers were asked for memory.
    var signals: [Int32] = []
    var shedRefusal: ShedRefusal?
  }
  private let state = Mutex(State())

  init(_ change: @Sendable (inout State) -> Void = { _ in }) { set(change) }

  func set(_ change: @Sendable (inout State) -> Void) { state.withLock { change(&$0) } }
  var killed: [Int32] { state.withLock { $0.killed } }
  var signals: [Int32] { state.withLock { $0.signals } }
  var reaped: [Int32] { state.withLock { $0.reaped } }
  var askedLogs: [String] { state.withLock { $0.askedLogs } }
  var recoveries: [String] { state.withLock { $0.recoveries } }
  var expected: [ImageExpectation] { state.withLock { $0.expected } }

  var children: [Int32] { state.withLock { $0.children } }
  var anyChildIsUnclaimed: Bool { state.withLock { $0.anyChildIsUnclaimed } }
  func reapIfUnclaimed(_ pid: Int32) {
    state.withLock { state in
      if state.running.contains(pid) { return }
      state.reaped.append(pid)
      state.children.removeAll { $0 == pid }
    }
  }

  func adoptedOrphans() -> [ProcessStat] { state.withLock { $0.orphans } }
  func environment(of pid: Int32) -> [Substring] {
    state.withLock { ($0.environments[pid] ?? []).map { $0[...] } }
  }
  func kill(_ stat: ProcessStat, until deadline: Deadline) throws(SystemCallError) {
    let refusal = state.withLock { state -> Int32? in
      state.killed.append(stat.pid)
      if let refusal = state.refusals[stat.pid] { return refusal }
      state.orphans.removeAll { $0.pid == stat.pid }
      if state.forks { state.add(stat.pid + 1) }
      for pid in state.childrenOf[stat.pid] ?? [] { state.add(pid) }
      return nil
    }
    if let refusal { throw SystemCallError("kill", on: "pid \(stat.pid)", code: refusal) }
  }

  func signal(
    _ process: WorkerProcess, _ signal: Int32, ifHandledIn tree: ProcessTree?
  ) throws(ShedRefusal) {
    let refusal = state.withLock { state in
      if state.shedRefusal == nil { state.signals.append(signal) }
      return state.shedRefusal
    }
    if let refusal { throw refusal }
  }

  func holder(
    of port: UInt16, earlierThan root: ProcessIdentity, session: Int32, cgroup: WorkerCgroup?
  ) -> PortHolder? { state.withLock { $0.holders[port] } }
  func group(of name: String, in roots: [CgroupRoot]) -> (path: String, pids: [Int32])? {
    state.withLock { $0.groups[name].map { ("/groups/\(name)", $0) } }
  }
  var forbidsStrangers: Bool { state.withLock { $0.forbidsStrangers } }
  func life(of record: WorkerRecord, bootID: String) -> ProcessLife {
    state.withLock { $0.ended.contains(record.name) } ? .hasEnded : .lives
  }
  func recover(
    _ target: HibernationTarget, by hibernator: Hibernator, from image: String,
    expecting: ImageExpectation, recorded: () -> String?
  ) throws(HibernationError) -> UInt64 {
    let (failure, restored) = state.withLock { state in
      state.recoveries.append("wake \(target.name)")
      state.expected.append(expecting)
      return (state.failures[target.name], state.restored)
    }
    if let failure { throw failure }
    if let obstacle = recorded() { set { $0.recoveries.append(obstacle) } }
    return restored
  }
  func end(_ record: WorkerRecord, _ target: HibernationTarget) throws {
    let isUnkillable = state.withLock { state in
      state.recoveries.append("end \(record.name)")
      return state.unkillable.contains(record.name)
    }
    if isUnkillable { throw TestFailure("SIGKILL has no effect") }
  }

  func writers(of log: String) -> [Int32] {
    state.withLock {
      $0.askedLogs.append(log)
      return $0.logs[log] ?? []
    }
  }
}

extension FakeProcesses.State {
  /// Adds an orphan that is like the test's own process, except for its pid, its start time and its
  /// environment.
  mutating func add(_ pid: Int32, at start: UInt64 = 100, _ entry: String = "DORMOUSE_RUN=mark") {
    guard var stat = try? ProcessStat.read(getpid()) else { return }
    stat.pid = pid
    stat.startTime = start
    orphans.append(stat)
    environments[pid] = ["HOME=/", entry]
  }
}
