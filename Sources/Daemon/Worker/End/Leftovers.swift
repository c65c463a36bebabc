import Glibc
import Linux
import Supervision

/// Processes of a worker that no daemon manages, because the record by which a daemon would have found them is
/// damaged or lost. A second instance beside them would have the same files and sockets, and the first would
/// outlive `dormouse shutdown`.
struct Leftovers {
  let records: WorkerRecordStore
  /// The directory of workers' logs.
  let logs: String
  let means: any LeftoverMeans

  /// Why the worker must not be launched; nil: nothing is left of an earlier instance.
  func refusal(ofLaunching name: String) -> String? {
    do { return try found(ofLaunching: name) } catch {
      return
        "can't see whether processes of an earlier instance still run (\(error)): try again later"
    }
  }

  private func found(ofLaunching name: String) throws -> String? {
    let group = try means.group(of: name)
    let pids = try processes(of: name, in: group)
    if pids.isEmpty { return group.map { Self.refusal(ofLaunching: name, beside: $0.path) } }
    let shown = pids.prefix(20).map(String.init).joined(separator: " ")
    let what =
      pids.count == 1
      ? "1 process of an earlier instance still runs"
      : "\(pids.count) processes of an earlier instance still run"
    return "\(what) without a valid record: run `kill -9 \(shown)`, then "
      + "`dormouse start \(name)`"
  }

  /// Its processes can't be listed: they are threads of a threaded cgroup, or another pid namespace's.
  private static func refusal(ofLaunching name: String, beside group: String) -> String {
    "processes of an earlier instance still run without a valid record in \(group): "
      + "run `echo 1 > \(group)/cgroup.kill`, then `dormouse start \(name)`"
  }

  private func processes(
    of name: String, in group: (path: String, pids: [Int32])?
  ) throws -> [Int32] {
    if let group { return group.pids.sorted() }
    return isDamaged(name) ? try means.writers(of: "\(logs)/\(name).log").sorted() : []
  }

  private func isDamaged(_ name: String) -> Bool {
    guard records.contains(name) else { return false }
    do throws(WorkerRecordError) {
      _ = try records.load(name)
      return false
    } catch { return true }
  }
}

/// The looks of `Leftovers` at processes. Tests provide their own.
protocol LeftoverMeans: Sendable {
  /// The worker's group, if some process runs in it.
  func group(of name: String) throws -> (path: String, pids: [Int32])?
  /// Processes that have this file as standard output or error.
  func writers(of log: String) throws -> [Int32]
}

struct LeftoversOnMachine: LeftoverMeans {
  /// Where workers have groups of their own.
  let groups: [CgroupRoot]

  func group(of name: String) throws -> (path: String, pids: [Int32])? {
    for root in groups {
      do throws(CgroupError) {
        guard let group = try WorkerCgroup.find(in: root, name: name), try group.isPopulated else {
          continue
        }
        // One whose processes can't be listed has some, and names none.
        return (group.path, (try? group.processes()) ?? [])
      } catch {
        // It was removed just now.
        guard case .failed(let cause) = error, cause.code == ENODEV else { throw error }
      }
    }
    return nil
  }

  /// Without cgroups: only the worker's processes have its log. Nothing else is looked at: the memory of a
  /// sleeping worker may be missing.
  func writers(of log: String) throws -> [Int32] {
    let names = try listDirectory("/proc", onlyDirectories: true)
    return names.compactMap { Int32($0) }.filter { pid in
      pid != getpid()
        && [STDOUT_FILENO, STDERR_FILENO].contains { descriptor in
          guard let target = linkTarget("/proc/\(pid)/fd/\(descriptor)") else { return false }
          // Rotated, or removed.
          return target == log || target.hasPrefix("\(log).") || target == "\(log) (deleted)"
        }
    }
  }
}
