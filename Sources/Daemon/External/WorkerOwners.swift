import Lifecycle
import Linux
import Supervision

extension WorkerRegistry {
  /// The worker that a process belongs to. Only a few files of /proc are read, however many workers
  /// there are: only the workers that may own the process are checked.
  func owner(of pid: Int32) -> WorkerID? {
    let chain = Self.chain(of: pid)
    let groups = Self.groups(of: pid)
    return values.first { worker in
      guard let process = worker.process, Self.mayContain(process, chain: chain, groups: groups)
      else {
        return false
      }
      return process.owns(pid)
    }?.id
  }

  private static func mayContain(
    _ process: WorkerProcess, chain: [ProcessStat], groups: [String]
  ) -> Bool {
    if chain.first?.identity == process.identity { return true }
    if let path = process.cgroup?.path { return groups.contains { path.hasSuffix($0) } }
    return chain.contains { $0.identity == process.identity || $0.session == process.session }
  }

  /// The process and its ancestors.
  private static func chain(of pid: Int32) -> [ProcessStat] {
    var chain: [ProcessStat] = []
    var current = pid
    // A process that has ended owns nothing.
    while current > 1, chain.count < 64, let stat = try? ProcessStat.read(current) {
      chain.append(stat)
      current = stat.parent
    }
    return chain
  }

  /// The process's cgroup and those above it: `/a/b`, `/a`. A mount may show them below another
  /// directory.
  private static func groups(of pid: Int32) -> [String] {
    var parts = (ProcessDetails.cgroup(of: pid) ?? "").split(separator: "/")
    var groups: [String] = []
    while !parts.isEmpty {
      groups.append("/" + parts.joined(separator: "/"))
      parts.removeLast()
    }
    return groups
  }
}
