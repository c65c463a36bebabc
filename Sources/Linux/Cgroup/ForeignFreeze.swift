/// The check whether another program has frozen a process: `docker pause`, `systemctl freeze`. That
/// is possible with both versions of cgroups.
///
/// Such a process doesn't come to a stop that a tracer waits for, and receives no SIGSTOP, until it
/// is thawed.
public enum ForeignFreeze {
  /// Whether the process is frozen; false if that isn't known.
  public static func holds(_ pid: Int32) -> Bool {
    // An error means that the process has ended.
    guard let text = try? readText("/proc/\(pid)/cgroup") else { return false }
    let groups = Self.groups(parsing: text)
    if groups.isEmpty { return false }
    // If the mounts can't be read, it isn't known.
    guard let mounts = try? Mount.all() else { return false }
    return groups.contains { isFrozen($0, mounts) }
  }

  struct Group: Hashable {
    var isOld: Bool
    var path: String
  }

  /// Returns the groups that can be frozen, from the lines of `/proc/PID/cgroup` (cgroups(7)).
  static func groups(parsing text: String) -> [Group] {
    text.split(separator: "\n").compactMap { line in
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      // The root of a hierarchy can't be frozen.
      guard parts.count == 3, parts[2].hasPrefix("/"), parts[2] != "/" else { return nil }
      let path = String(parts[2])
      if parts[0] == "0", parts[1].isEmpty { return Group(isOld: false, path: path) }
      return parts[1].split(separator: ",").contains("freezer")
        ? Group(isOld: true, path: path) : nil
    }
  }

  private static func isFrozen(_ group: Group, _ mounts: [Mount]) -> Bool {
    for mount in mounts where mount.type == (group.isOld ? "cgroup" : "cgroup2") {
      guard let directory = CgroupRoot.directory(of: group.path, in: mount) else { continue }
      if group.isOld {
        // Only the mount of that hierarchy has the file. FREEZING means that some of its processes
        // still run.
        if let state = try? readText("\(directory)/freezer.state") { return state.hasPrefix("FR") }
      } else if let events = try? readText("\(directory)/cgroup.events") {
        return events.contains("frozen 1")
      }
    }
    return false
  }
}
