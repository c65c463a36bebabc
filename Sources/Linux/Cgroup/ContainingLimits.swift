import Glibc

/// The memory limits of the cgroups in which the workers are: those of a container, a unit, a
/// session. The kernel ends processes if such a group has used up its limit, however much memory
/// the machine has.
///
/// Each read returns the limits of that moment, for the group in which the process is at that
/// moment. The files are the kernel's own, and reading them waits for no disk.
public final class ContainingLimits {
  /// A group, and the values that its files had at the last read.
  private struct Group {
    let files: LimitFiles
    var room: MemoryRoom?
  }

  private let membership: KernelRecord
  private let workers: String?
  private var lastMembership: [UInt8] = []
  private var groups: [Group] = []

  /// - Parameter workers: the group that contains the workers' groups (`CgroupRoot.path`); nil:
  ///   workers stay in the group of this process. With a memory controller of version 1 they always
  ///   do.
  public convenience init(workers: String?) throws(SystemCallError) {
    self.init(membership: try KernelRecord("/proc/self/cgroup"), workers: workers)
  }

  init(membership: KernelRecord, workers: String?) {
    self.membership = membership
    self.workers = workers
  }

  /// Returns the machine's memory as far as the limits permit its use: the smallest limit, and the
  /// smallest available memory. `limitedBy` names the group in which least is available.
  public func applied(to machine: MemoryInfo) -> MemoryInfo {
    findGroups()
    var info = machine
    var tightest: MemoryRoom?
    for index in groups.indices {
      do throws(SystemCallError) {
        groups[index].room = try groups[index].files.room(below: machine.total)
      } catch  where error.meansVanished || error.code == ENODEV {
        groups[index].room = nil
      } catch {
        // The group can't be read now, for example because no descriptor is free. Its last values
        // still count.
      }
      guard let room = groups[index].room else { continue }
      info.total = min(info.total, room.limit)
      info.available = min(info.available, room.available)
      if let swap = room.swapFree { info.swapFree = min(info.swapFree, swap) }
      if tightest.map({ room.available < $0.available }) ?? true { tightest = room }
    }
    info.limitedBy = tightest?.group
    return info
  }

  /// Returns the swap that a process may still use, in bytes: the least that its group and the
  /// groups above it permit. It is nil if there is no limit, or only one of version 1.
  public static func swapLeft(of pid: Int32) throws(SystemCallError) -> Int64? {
    let membership = try readFile("/proc/\(pid)/cgroup")
    var smallest: Int64?
    for group in try LimitFiles.containing(membership: membership, workers: nil) {
      if group.isFirstVersion { continue }
      guard let left = try group.swapFree(0) else { continue }
      smallest = min(left, smallest ?? left)
    }
    return smallest
  }

  /// Finds the groups again if the process has been moved.
  private func findGroups() {
    do {
      let now = try membership.read()
      if now == lastMembership { return }
      groups = try LimitFiles.containing(membership: now, workers: workers).map { Group(files: $0) }
      lastMembership = now
    } catch {
      // The groups that were found before still count, and the next read tries again.
    }
  }
}

/// The memory that the limit of a group leaves, in bytes.
struct MemoryRoom: Hashable {
  /// The directory of the group.
  var group: String
  var limit: Int64
  /// The memory that the group can still use before the kernel has to end processes or swap: up to
  /// the limit, and what the kernel can reclaim.
  var available: Int64
  /// The swap that the group may still use; nil if there is no limit.
  var swapFree: Int64?
}

/// The files of one group that has a memory controller.
struct LimitFiles: Hashable {
  /// The path of the group's directory.
  var path: String
  var isFirstVersion: Bool
  /// A limit of groups above it that can't be seen, because the process is in a container. Only
  /// version 1 reports it.
  var hiddenLimit: Int64?

  /// Reads the group's memory. It returns nil if the group has no limit below the machine's memory,
  /// or no memory controller.
  func room(below total: Int64) throws(SystemCallError) -> MemoryRoom? {
    let limits =
      isFirstVersion
      ? [try number("memory.limit_in_bytes"), hiddenLimit]
      : [try number("memory.max"), try number("memory.high")]
    guard let limit = limits.compactMap({ $0 }).min(), limit < total,
      let usage = try number(isFirstVersion ? "memory.usage_in_bytes" : "memory.current")
    else { return nil }
    let free = limit - usage
    return MemoryRoom(
      group: path, limit: limit, available: min(limit, max(0, free + (try reclaimable()))),
      swapFree: try swapFree(free))
  }

  /// Estimates the memory that can be reclaimed as the kernel does it for MemAvailable: file pages
  /// that weren't used lately, and half of those in use.
  private func reclaimable() throws(SystemCallError) -> Int64 {
    let bytes = try readRecord("\(path)/memory.stat")
    func sum(_ key: StaticString) -> Int64 { value(of: key, in: bytes)?.number() ?? 0 }
    if isFirstVersion { return sum("total_inactive_file ") + sum("total_active_file ") / 2 }
    return sum("inactive_file ") + (sum("active_file ") + sum("slab_reclaimable ")) / 2
  }

  /// - Parameter free: the memory that the group can use up to its limit.
  func swapFree(_ free: Int64) throws(SystemCallError) -> Int64? {
    if !isFirstVersion {
      guard let limit = try number("memory.swap.max"), let used = try number("memory.swap.current")
      else { return nil }
      return max(0, limit - used)
    }
    // Both files count memory and swap together.
    guard let limit = try number("memory.memsw.limit_in_bytes"),
      let used = try number("memory.memsw.usage_in_bytes")
    else { return nil }
    return max(0, limit - used - free)
  }

  /// Reads a number; nil if the kernel has no such file for this group, or if the file contains
  /// `max`.
  private func number(_ file: String) throws(SystemCallError) -> Int64? {
    do throws(SystemCallError) {
      return try readRecord("\(path)/\(file)").lines().first?.number()
    } catch  where error.code == ENOENT {
      return nil
    }
  }
}

// MARK: finding the groups

extension LimitFiles {
  /// Returns the groups from that of the workers up to the highest one that can be seen.
  ///
  /// - Parameter membership: the content of /proc/self/cgroup (cgroups(7)).
  static func containing(membership: [UInt8], workers: String?) throws(SystemCallError)
    -> [LimitFiles]
  {
    let text = String(decoding: membership, as: UTF8.self)
    let mounts = try Mount.all()
    if let group = groupOfFirstVersion(parsing: text) {
      let mount = mounts.last { $0.type == "cgroup" && $0.options.contains("memory") }
      guard let start = mount.flatMap({ directory(of: group, in: $0) }) else { return [] }
      return try up(from: start, isFirstVersion: true)
    }
    if let workers { return try up(from: workers, isFirstVersion: false) }
    guard let group = CgroupRoot.groupPath(parsing: text),
      let mount = mounts.last(where: { $0.type == "cgroup2" }),
      let start = directory(of: group, in: mount)
    else { return [] }
    return try up(from: DelegatedGroup.rootForChildren(of: start), isFirstVersion: false)
  }

  /// Returns the path in the line `4:memory:/…`.
  static func groupOfFirstVersion(parsing text: String) -> String? {
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      if parts.count == 3, parts[1].split(separator: ",").contains("memory") {
        return String(parts[2])
      }
    }
    return nil
  }

  /// Returns the directory of a group in a mount. In a container the mount may show only the
  /// container's group, under a path that isn't this process's.
  static func directory(of group: String, in mount: Mount) -> String? {
    // The group is outside of the tree that the process may see.
    if group.hasPrefix("/..") { return nil }
    if group == "/" { return mount.point }
    return CgroupRoot.directory(of: group, in: mount)
  }

  private static func up(
    from start: String, isFirstVersion: Bool
  ) throws(SystemCallError) -> [LimitFiles] {
    var groups: [LimitFiles] = []
    var path = start[...]
    // A directory above the mount isn't a group.
    while access("\(path)/cgroup.procs", F_OK) == 0 {
      let group = LimitFiles(path: String(path), isFirstVersion: isFirstVersion)
      if isFirstVersion, !groups.isEmpty, try group.number("memory.use_hierarchy") == 0 { break }
      groups.append(group)
      path = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
    }
    if isFirstVersion, let top = groups.indices.last {
      let stat = try readFile("\(groups[top].path)/memory.stat")
      groups[top].hiddenLimit = value(of: "hierarchical_memory_limit ", in: stat)?.number()
    }
    return groups
  }
}
