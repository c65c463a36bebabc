import Lifecycle
import Linux
import Supervision

extension WorkerRegistry {
  /// The worker that a process belongs to. Only a few files of /proc are read, however many workers
  /// there are: only the workers that may own the process are checked.
  func owner(of pid: Int32) -> WorkerID? {
    let chain = ProcessStat.chain(of: pid)
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

  /// The process's cgroup and those above it: `/a`, `/a/b`. A mount may show them below another
  /// directory.
  private static func groups(of pid: Int32) -> [String] {
    let names = (ProcessDetails.cgroup(of: pid) ?? "").split(separator: "/")
    return names.indices.map { "/" + names[...$0].joined(separator: "/") }
  }
}

extension ProcessStat {
  /// A process and its ancestors.
  static func chain(of pid: Int32) -> [ProcessStat] {
    var chain: [ProcessStat] = []
    var current = pid
    // The ancestors of a process that has ended can't be found.
    while current > 1, chain.count < 64, let stat = try? ProcessStat.read(current) {
      chain.append(stat)
      current = stat.parent
    }
    return chain
  }
}
