/// How often the kernel has ended processes for the limit of a memory cgroup, for a group and for those that
/// contain it.
public struct MemoryLimitHits: Hashable, Sendable {
  /// Directories, the innermost first, each with the number of times that its own limit was reached and the kernel
  /// had to end a process. Groups without a memory controller are left out.
  public var groups: [Group]
  /// The outermost group that can be seen isn't the root: in a container, limits of the groups above it are hidden.
  public var mayHaveHiddenLimits: Bool

  public struct Group: Hashable, Sendable {
    public var path: String
    public var count: Int
    public init(path: String, count: Int) {
      self.path = path
      self.count = count
    }
  }

  public init(groups: [Group], mayHaveHiddenLimits: Bool) {
    self.groups = groups
    self.mayHaveHiddenLimits = mayHaveHiddenLimits
  }

  /// The innermost group whose limit was reached since an earlier reading.
  public func reached(since earlier: MemoryLimitHits) -> String? {
    groups.first { group in
      group.count > earlier.groups.first { $0.path == group.path }?.count ?? 0
    }?.path
  }

  /// nil: no group has counts; a kernel before Linux 5.2 has no `memory.events.local`.
  public static func read(from group: String) -> MemoryLimitHits? {
    var hits = MemoryLimitHits(groups: [], mayHaveHiddenLimits: false)
    var path = group
    while fileExists("\(path)/cgroup.controllers") {
      // Those of the groups that a worker makes below its own count as its own.
      let file = path == group ? "memory.events" : "memory.events.local"
      // The root has no such file, and a group without a memory controller neither.
      if let bytes = try? readRecord("\(path)/\(file)"),
        let count: Int = value(of: "oom ", in: bytes)?.number()
      {
        hits.groups.append(Group(path: path, count: count))
      }
      // Only the root has no type.
      hits.mayHaveHiddenLimits = fileExists("\(path)/cgroup.type")
      guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { break }
      path = String(path[..<slash])
    }
    return hits.groups.isEmpty ? nil : hits
  }
}
