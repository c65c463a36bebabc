/// The dirty memory of a worker by the kind of its mappings (`footprint NAME`). Sizes are in bytes.
public struct DirtyMemoryReport: Codable, Hashable, Sendable {
  public var worker: String
  /// The number of processes that were read.
  public var processes: Int
  /// The number of processes that may not be read.
  public var unreadable: Int
  /// The sum over all mappings. `swapped` is a sum, too.
  public var dirty: Int64
  public var swapped: Int64
  /// The groups with the most memory, the largest first.
  public var mappings: [Mappings]
  /// The sum of all other groups.
  public var others: Sum

  public struct Mappings: Codable, Hashable, Sendable {
    /// The kind is `heap`, `stack`, `anonymous`, `file`, `shared_memory` or `other`.
    public var kind: String
    /// The file's path, or the name that the process or the kernel has given the mapping.
    public var name: String?
    public var dirty: Int64
    public var swapped: Int64
    /// The number of mappings in this group.
    public var count: Int

    public init(kind: String, name: String? = nil, dirty: Int64, swapped: Int64, count: Int) {
      self.kind = kind
      self.name = name
      self.dirty = dirty
      self.swapped = swapped
      self.count = count
    }
  }

  public struct Sum: Codable, Hashable, Sendable {
    public var dirty: Int64
    public var swapped: Int64
    public var count: Int
  }

  public init(
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
