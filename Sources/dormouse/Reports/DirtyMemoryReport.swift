import Control
import Linux

/// The dirty memory of a worker by the kind of its mappings (`footprint NAME`). Sizes are in bytes.
struct DirtyMemoryReport: Codable, Hashable, Sendable {
  var worker: String
  /// The number of processes that were read.
  var processes: Int
  /// The number of processes that may not be read.
  var unreadable: Int
  /// The sum over all mappings. `swapped` is a sum, too.
  var dirty: Int64
  var swapped: Int64
  /// The groups with the most memory, the largest first.
  var mappings: [Mappings]
  /// The sum of all other groups.
  var others: Sum

  struct Mappings: Codable, Hashable, Sendable {
    /// The kind is `heap`, `stack`, `anonymous`, `file`, `shared_memory` or `other`.
    var kind: String
    /// The file's path, or the name that the process or the kernel has given the mapping.
    var name: String?
    var dirty: Int64
    var swapped: Int64
    /// The number of mappings in this group.
    var count: Int
  }

  struct Sum: Codable, Hashable, Sendable {
    var dirty: Int64
    var swapped: Int64
    var count: Int
  }

  private static let maxGroups = 10

  /// Reads the mappings of the worker's processes.
  init(of worker: WorkerReport) throws {
    var read = DirtyMappings()
    var problem: FootprintError?
    var unreadable = 0
    for pid in WorkerProcessReader.pids(of: worker) {
      do throws(FootprintError) { _ = try read.add(pid) } catch {
        problem = error
        unreadable += 1
      }
    }
    if read.processes == 0, let problem {
      throw CommandFailure(.notDone, escaped("\(problem)"))
    }
    let all = read.largestFirst.map {
      Mappings(
        kind: $0.kind.rawValue, name: $0.name.isEmpty ? nil : $0.name, dirty: $0.dirty,
        swapped: $0.swapped, count: $0.mappings)
    }
    (self.worker, processes, self.unreadable) = (worker.name, read.processes, unreadable)
    dirty = all.reduce(0) { $0 &+ $1.dirty }
    swapped = all.reduce(0) { $0 &+ $1.swapped }
    mappings = Array(all.prefix(Self.maxGroups))
    let remaining = all.dropFirst(Self.maxGroups)
    others = Sum(
      dirty: remaining.reduce(0) { $0 &+ $1.dirty },
      swapped: remaining.reduce(0) { $0 &+ $1.swapped },
      count: remaining.reduce(0) { $0 + $1.count })
  }
}

/// The output of `dormouse footprint NAME`, and the end of that of `dormouse status --verbose
/// NAME`.
func renderDirtyMemory(
  _ report: DirtyMemoryReport, width: Int? = nil, color: Bool = false
) -> String {
  let name = escaped(report.worker)
  guard report.processes > 0 else { return "\(name) has no process\n" }
  let swapped = report.swapped > 0 ? ", and \(sizeText(report.swapped)) swapped" : ""
  let unreadable = counted(report.unreadable, "process", ending: "es")
  let hidden =
    report.unreadable > 0 ? "; \(unreadable) more can't be read (another user's)" : ""
  let title =
    "\(name): \(sizeText(report.dirty)) of dirty memory in "
    + "\(counted(report.processes, "process", ending: "es"))\(swapped)\(hidden)"
  var table = Table(columns: [
    .number("DIRTY"), .number("SWAPPED"), .number("MAPPINGS"), "WHAT",
  ])
  table.rows = report.mappings.map {
    row($0.dirty, swapped: $0.swapped, count: $0.count, what: whatText($0))
  }
  let others = report.others
  if others.count > 0 {
    table.rows.append(
      row(others.dirty, swapped: others.swapped, count: others.count, what: "all others"))
  }
  let lines = table.lines(width: width, color: color)
  return (wrapped(title, to: width) + lines).joined(separator: "\n") + "\n"
}

private func row(
  _ dirty: Int64, swapped: Int64, count: Int, what: String
) -> [Table.Cell] {
  [
    .init(sizeText(dirty)), .init(swapped > 0 ? sizeText(swapped) : "-"), .init("\(count)"),
    .init(what),
  ]
}

private func whatText(_ mappings: DirtyMemoryReport.Mappings) -> String {
  let name = mappings.name.map(escaped)
  switch mappings.kind {
  case "heap": return "heap"
  case "stack": return "stacks"
  case "anonymous": return name.map { "anonymous memory named \($0)" } ?? "anonymous memory"
  default: return name ?? escaped(mappings.kind)
  }
}
