import Glibc
import Linux
import Supervision
import Synchronization

@testable import Daemon

/// Processes as a test says.
final class FakeProcesses: Processes {
  struct State {
    var children: [Int32] = []
    var anyChildIsUnclaimed = false
    var running: Set<Int32> = []
    var reaped: [Int32] = []
    var orphans: [ProcessStat] = []
    var environments: [Int32: [String]] = [:]
    /// Orphans as soon as this one has ended.
    var childrenOf: [Int32: [Int32]] = [:]
    var refusals: [Int32: Int32] = [:]
    var killed: [Int32] = []
    /// Each kill is followed by a new orphan.
    var forks = false
    /// Programs that aren't the worker's.
    var holders: [UInt16: PortHolder] = [:]
    /// Of workers' groups.
    var groups: [String: [Int32]] = [:]
    /// Of logs, by path.
    var logs: [String: [Int32]] = [:]
    var askedLogs: [String] = []
    /// By which workers were asked for memory, unless that is refused.
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

  var children: [Int32] { state.withLock { $0.children } }
  var anyChildIsUnclaimed: Bool { state.withLock { $0.anyChildIsUnclaimed } }
  func mayBeReaped(_ pid: Int32) -> Bool { state.withLock { !$0.running.contains(pid) } }
  func reap(_ pid: Int32) {
    state.withLock { state in
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
  func writers(of log: String) -> [Int32] {
    state.withLock {
      $0.askedLogs.append(log)
      return $0.logs[log] ?? []
    }
  }
}

extension FakeProcesses.State {
  /// An orphan like the test's own process, but for its number, its start and its environment.
  mutating func add(_ pid: Int32, at start: UInt64 = 100, _ entry: String = "DORMOUSE_RUN=mark") {
    guard var stat = try? ProcessStat.read(getpid()) else { return }
    stat.pid = pid
    stat.startTime = start
    orphans.append(stat)
    environments[pid] = ["HOME=/", entry]
  }
}
