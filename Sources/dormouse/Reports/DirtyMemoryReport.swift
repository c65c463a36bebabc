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

  init(
    worker: String, processes: Int, unreadable: Int, all: [Mappings], maxMappings: Int
  ) {
    self.worker = worker
    self.processes = processes
    self.unreadable = unreadable
    dirty = all.reduce(0) { $0 &+ $1.dirty }
    swapped = all.reduce(0) { $0 &+ $1.swapped }
    mappings = Array(all.prefix(maxMappings))
    let remaining = all.dropFirst(maxMappings)
    others = Sum(
      dirty: remaining.reduce(0) { $0 &+ $1.dirty },
      swapped: remaining.reduce(0) { $0 &+ $1.swapped },
      count: remaining.reduce(0) { $0 + $1.count })
  }
}
