import Glibc
import Linux
import Supervision

/// Processes of a worker that no daemon manages, because the record by which a daemon would have found them is
/// damaged or lost. A second instance beside them would have the same files and sockets, and the first would
/// outlive `dormouse shutdown`.
struct Leftovers {
  /// Where workers have groups of their own.
  let groups: [CgroupRoot]
  let records: WorkerRecordStore
  /// The directory of workers' logs.
  let logs: String

  /// Why the worker must not be launched; nil: nothing is left of an earlier instance.
  func refusal(ofLaunching name: String) -> String? {
    let pids = processes(of: name)
    guard !pids.isEmpty else { return nil }
    let shown = pids.prefix(20).map(String.init).joined(separator: " ")
    let what =
      pids.count == 1
      ? "1 process of an earlier instance still runs"
      : "\(pids.count) processes of an earlier instance still run"
    return "\(what) without a valid record: run `kill -9 \(shown)`, then "
      + "`dormouse start \(name)`"
  }

  func processes(of name: String) -> [Int32] {
    for root in groups {
      // A cgroup that doesn't exist, or can't be read, has no process to name.
      if let group = WorkerCgroup.find(in: root, name: name), (try? group.isPopulated) == true {
        return ((try? group.processes()) ?? []).sorted()
      }
    }
    return isDamaged(name) ? writers(of: "\(logs)/\(name).log") : []
  }

  private func isDamaged(_ name: String) -> Bool {
    guard records.contains(name) else { return false }
    do throws(WorkerRecordError) {
      _ = try records.load(name)
      return false
    } catch { return true }
  }

  /// Without cgroups: processes that have the worker's log as standard output or error, which only the worker's
  /// processes do. Nothing else is looked at: the memory of a sleeping worker may be missing.
  private func writers(of log: String) -> [Int32] {
    let names = (try? listDirectory("/proc", onlyDirectories: true)) ?? []
    return names.compactMap { Int32($0) }.filter { pid in
      pid != getpid()
        && [STDOUT_FILENO, STDERR_FILENO].contains { descriptor in
          guard let target = linkTarget("/proc/\(pid)/fd/\(descriptor)") else { return false }
          // Rotated, or removed.
          return target == log || target.hasPrefix("\(log).") || target == "\(log) (deleted)"
        }
    }.sorted()
  }
}
