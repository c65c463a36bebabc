import Control
import Linux

/// What `top` and `ps` read about workers from /proc and cgroups themselves. The daemon does
/// nothing for it.
enum WorkerProcessReader {
  /// Returns the processor time of each running worker. A worker whose time can't be read is left
  /// out.
  static func processorTimes(of workers: [WorkerReport]) -> [String: ProcessorReading] {
    var scan: ProcessScan?
    var readings: [String: ProcessorReading] = [:]
    for worker in workers {
      guard let pid = worker.pid else { continue }
      let used: ProcessorReading.Used
      if let time = group(of: worker)?.cpuMicroseconds() {
        used = .group(time)
      } else {
        // If processes can't be listed, there is no number.
        if scan == nil { scan = try? ProcessScan.read() }
        guard let tree = tree(of: pid, in: scan) else { continue }
        used = .processes(
          Dictionary(tree.processes.map { ($0.identity, nanoseconds($0.cpuTicks)) }) { first, _ in
            first
          })
      }
      readings[worker.name] = ProcessorReading(time: Clocks.monotonic, pid: pid, used: used)
    }
    return readings
  }

  /// Returns the processes of a worker. Their names are the kernel's: reading a command line would
  /// touch the memory of a process that may be hibernated.
  static func processes(of worker: WorkerReport) -> TopProcesses {
    TopProcesses(
      worker: worker.name,
      processes: stats(of: worker).map { stat in
        // Another user's process can't be measured.
        let footprint = (try? Footprint.measure(stat.pid))??.footprint
        return .init(pid: stat.pid, parent: stat.parent, name: stat.name, footprint: footprint)
      })
  }

  static func pids(of worker: WorkerReport) -> [Int32] { stats(of: worker).map(\.pid) }

  private static func stats(of worker: WorkerReport) -> [ProcessStat] {
    var stats: [ProcessStat] = []
    if let group = group(of: worker) {
      // A process that has ended meanwhile isn't shown.
      stats = ((try? group.processes()) ?? []).compactMap { try? ProcessStat.read($0) }
    } else if let pid = worker.pid {
      // If processes can't be listed, none is shown.
      stats = tree(of: pid, in: try? ProcessScan.read())?.processes ?? []
    }
    return stats.filter { !$0.isEnded }
  }

  /// Returns the largest processes that belong to none of the workers.
  static func others(than workers: [WorkerReport]) -> TopOthers {
    let owners = ProcessOwners(
      workers.compactMap { worker in
        (worker.pid ?? worker.wrapper).map {
          .init(worker: worker.name, pid: $0, session: worker.pid, cgroup: worker.cgroup?.path)
        }
      })
    do throws(SystemCallError) {
      // The workers' processes are among them, and are left out below.
      let largest = try LargestProcesses.read(upTo: maxScanned, until: Deadline(in: .seconds(5)))
      let others = largest.processes.filter { owners.worker(of: $0) == nil }
      return TopOthers(processes: Array(others.prefix(maxOthers)))
    } catch { return TopOthers(processes: [], problem: "processes can't be read: \(error)") }
  }

  private static let maxScanned = 400
  private static let maxOthers = 20

  /// Returns the last lines of a worker's log.
  static func log(of worker: WorkerReport) -> TopLog {
    guard let log = LogLocation(worker) else { return TopLog(worker: worker.name, lines: []) }
    do throws(FileError) {
      let file = try log.open()
      let start = max((file.fileSize ?? 0) - Int64(maxLogBytes), 0)
      let bytes = try FileError.wrap("reading", on: log.path) { () throws(SystemCallError) in
        try file.readBytes(upTo: maxLogBytes, at: start)
      }
      var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      // The first line may have begun before the part that was read.
      if start > 0, lines.count > 1 { lines.removeFirst() }
      if lines.last?.isEmpty == true { lines.removeLast() }
      return TopLog(
        worker: worker.name,
        lines: lines.suffix(maxLogLines).map {
          String(decoding: $0.prefix(maxLineLength), as: UTF8.self)
        })
    } catch {
      return TopLog(worker: worker.name, lines: [], problem: "its log can't be read: \(error)")
    }
  }

  /// The part of a log that can be scrolled, in bytes and in lines.
  private static let maxLogBytes = 1 << 17
  private static let maxLogLines = 1000
  /// The maximum length of a line in bytes.
  private static let maxLineLength = 1 << 12

  private static func group(of worker: WorkerReport) -> WorkerCgroup? {
    // If the group can't be opened, the worker has ended, or its group isn't visible to this
    // process.
    worker.cgroup.flatMap { try? WorkerCgroup(path: $0.path) }
  }

  private static func tree(of pid: Int32, in scan: ProcessScan?) -> ProcessTree? {
    // If there is no such process, it has ended.
    guard let scan, let root = try? ProcessIdentity.current(of: pid) else { return nil }
    let tree = scan.tree(root: root, session: pid)
    return tree.isEmpty ? nil : tree
  }

  private static func nanoseconds(_ ticks: UInt64) -> UInt64 {
    ticks &* (1_000_000_000 / ClockTicks.perSecond)
  }
}
