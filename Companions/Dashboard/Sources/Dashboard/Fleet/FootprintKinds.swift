import Control
import Linux

/// The kinds of a worker's memory, in bytes.
struct FootprintKinds: Encodable, Hashable, Sendable {
  /// The next three values are the footprint.
  var anonymous: Int64
  var shared: Int64
  var swapped: Int64
  /// File pages that the kernel can take back. They aren't part of the footprint.
  var files: Int64
  /// The number of processes that were measured.
  var processes: Int

  init(_ footprint: Footprint, processes: Int) {
    swapped = footprint.swapped
    let resident = max(0, footprint.footprint - footprint.swapped)
    shared = min(footprint.sharedMemory ?? 0, resident)
    anonymous = resident - shared
    files = footprint.reclaimable
    self.processes = processes
  }

  /// Measures the processes of a worker now. The result is nil if it has none, or if this user may
  /// not measure them.
  static func measure(_ worker: WorkerReport) -> FootprintKinds? {
    guard let pid = worker.pid else { return nil }
    do {
      let pids = try processes(pid, cgroup: worker.cgroup?.path)
      return FootprintKinds(try Footprint.measure(pids), processes: pids.count)
    } catch {
      // The worker has ended, or belongs to another user. The page shows no kinds.
      return nil
    }
  }

  private static func processes(_ pid: Int32, cgroup: String?) throws -> [Int32] {
    if let cgroup {
      return try readText("\(cgroup)/cgroup.procs").split(separator: "\n").compactMap { Int32($0) }
    }
    return try ProcessScan.read().tree(root: ProcessIdentity.current(of: pid)).pids
  }
}
