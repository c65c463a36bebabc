import Linux
import Supervision

/// Detects processes of a worker that no daemon manages, because the record by which a daemon would
/// have found them is damaged or lost. A second instance beside them would use the same files and
/// sockets, and the first one would outlive `dormouse shutdown`.
struct Leftovers {
  let records: WorkerRecordStore
  /// The directory of workers' logs.
  let logs: String
  /// The cgroups below which workers have cgroups of their own.
  var groups: [CgroupRoot] = []
  let processes: any Processes

  /// The reason for which the worker must not be launched; nil: no process of an earlier instance
  /// runs.
  func refusal(ofLaunching name: String) -> String? {
    do { return try findRefusal(ofLaunching: name) } catch {
      return
        "can't see whether processes of an earlier instance still run (\(error)): try again later"
    }
  }

  private func findRefusal(ofLaunching name: String) throws -> String? {
    let group = try processes.group(of: name, in: groups)
    let pids = try pids(of: name, in: group)
    if pids.isEmpty { return group.map { Self.refusal(ofLaunching: name, beside: $0.path) } }
    let shown = pids.prefix(20).map(String.init).joined(separator: " ")
    let what =
      pids.count == 1
      ? "1 process of an earlier instance still runs"
      : "\(pids.count) processes of an earlier instance still run"
    return "\(what) without a valid record: run `kill -9 \(shown)`, then "
      + "`dormouse start \(name)`"
  }

  /// The refusal if the processes can't be listed: they are threads of a threaded cgroup, or in
  /// another pid namespace.
  private static func refusal(ofLaunching name: String, beside group: String) -> String {
    "processes of an earlier instance still run without a valid record in \(group): "
      + "run `echo 1 > \(group)/cgroup.kill`, then `dormouse start \(name)`"
  }

  private func pids(
    of name: String, in group: (path: String, pids: [Int32])?
  ) throws -> [Int32] {
    if let group { return group.pids.sorted() }
    return isDamaged(name) ? try processes.writers(of: "\(logs)/\(name).log").sorted() : []
  }

  private func isDamaged(_ name: String) -> Bool {
    guard records.contains(name) else { return false }
    do throws(WorkerRecordError) {
      _ = try records.load(name)
      return false
    } catch { return true }
  }
}
