/// The number of times that the kernel has ended processes because of the limit of a memory cgroup,
/// for a group and for those that contain it.
public struct MemoryLimitHits: Hashable, Sendable {
  /// The groups, the innermost first, each with the number of times that its own limit was reached
  /// and the kernel had to end a process. Groups without a memory controller are left out.
  public var groups: [Group]
  /// True if the outermost group that can be seen isn't the root. In a container, limits of the
  /// groups above it are hidden.
  public var mayHaveHiddenLimits: Bool

  public struct Group: Hashable, Sendable {
    /// The directory of the group.
    public var path: String
    public var count: Int
  }

  /// Returns the innermost group whose limit was reached since an earlier reading; nil if there is
  /// none.
  public func reached(since earlier: MemoryLimitHits) -> String? {
    groups.first { group in
      group.count > earlier.groups.first { $0.path == group.path }?.count ?? 0
    }?.path
  }

  /// Reads the counts of a group and those above it. It returns nil if no group has counts: a
  /// kernel before Linux 5.2 has no `memory.events.local`.
  public static func read(from group: String) -> MemoryLimitHits? {
    var hits = MemoryLimitHits(groups: [], mayHaveHiddenLimits: false)
    var path = group
    while fileExists("\(path)/cgroup.controllers") {
      // The counts of the groups that a worker makes below its own are included in its own.
      let file = path == group ? "memory.events" : "memory.events.local"
      // The root has no such file, and neither has a group without a memory controller.
      if let bytes = try? readRecord("\(path)/\(file)"),
        let count: Int = value(of: "oom ", in: bytes)?.number()
      {
        hits.groups.append(Group(path: path, count: count))
      }
      // Only the root has no type file.
      hits.mayHaveHiddenLimits = fileExists("\(path)/cgroup.type")
      guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { break }
      path = String(path[..<slash])
    }
    return hits.groups.isEmpty ? nil : hits
  }
}
