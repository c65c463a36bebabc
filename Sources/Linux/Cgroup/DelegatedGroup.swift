import Glibc

/// The cgroup that a service manager has delegated to the daemon, and the daemon's own group in it.
///
/// The kernel distributes controllers to a group's children only while no process is in the group
/// itself. So the daemon is in a child group beside its workers: `daemon` if systemd puts it there
/// (`DelegateSubgroup=daemon`, from systemd 254 on), otherwise `self`, into which it moves itself.
///
/// An older systemd starts the unit again in the delegated group itself. That fails while
/// controllers are enabled there, that is, while workers of a killed daemon live. The unit runs
/// `prepareForStart` after a daemon has ended (`ExecStopPost=`): it disables the controllers, and
/// the next daemon enables them again. The unit also runs it before the first daemon
/// (`ExecStartPre=`); this shows the daemon that it may enable them.
public enum DelegatedGroup {
  static let bySystemd = "daemon"
  static let byItself = "self"

  /// The reason why memory limits can't be set.
  public struct Obstacle: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String
  }

  /// Returns the group below which the children of a process in `group` belong.
  static func rootForChildren(of group: String) -> String {
    guard let slash = group.lastIndex(of: "/"), slash > group.startIndex,
      [bySystemd, byItself].contains(String(group[group.index(after: slash)...]))
    else { return group }
    let parent = String(group[..<slash])
    // If other processes are in the parent, it isn't a group that was left for children.
    let isLeft = (try? readFile("\(parent)/cgroup.procs").isEmpty) == true
    return isLeft && access("\(parent)/cgroup.procs", W_OK) == 0 ? parent : group
  }

  /// Moves the calling process out of its group if that is a delegated one, so that limits can be
  /// set on its children. Call it before the process has children.
  ///
  /// - Returns: the reason why the process stays in its group; nil if limits are possible.
  public static func leave() -> Obstacle? {
    do {
      guard let group = try CgroupRoot.groupsOfThisProcess().first else { return nil }
      try leave(group, isServed: isStartedBySystemd)
      return nil
    } catch { return error as? Obstacle ?? Obstacle(description: "\(error)") }
  }

  /// - Parameter isServed: true if the group's manager starts the process again in `group` when it
  ///   dies.
  static func leave(_ group: String, isServed: Bool) throws(Obstacle) {
    // The root of the tree has no type file, and this rule doesn't apply to it.
    guard rootForChildren(of: group) == group, access("\(group)/cgroup.type", F_OK) == 0 else {
      return
    }
    do {
      let members = try readFile("\(group)/cgroup.procs").lines().compactMap {
        line -> Int32? in line.number()
      }
      guard members == [getpid()] else {
        throw Obstacle(description: "other processes are in its cgroup \(group)")
      }
      let inner = "\(group)/\(byItself)"
      if isServed, access(inner, F_OK) != 0 {
        throw Obstacle(
          description: "its unit lacks `DelegateSubgroup=daemon` (systemd 254 or later) or "
            + "`ExecStartPre=` and `ExecStopPost=-/usr/local/bin/dormouse daemon --before-start`, "
            + "without which systemd couldn't start it again beside living workers")
      }
      try makeDirectory(inner, mode: 0o755)
      try writeControl("\(inner)/cgroup.procs", "\(getpid())")
    } catch let obstacle as Obstacle { throw obstacle } catch {
      throw Obstacle(description: "\(error)")
    }
  }

  /// True if this process is the main process of a unit (systemd.exec(5)).
  private static var isStartedBySystemd: Bool {
    getenv("SYSTEMD_EXEC_PID").map { String(cString: $0) } == "\(getpid())"
  }

  // MARK: before the daemon starts

  /// Disables the controllers in the unit's group, and makes the group `self`. systemd runs
  /// `ExecStartPre=` in the daemon's future group, and `ExecStopPost=` in the group `.control` of a
  /// delegated unit.
  public static func prepareForStart() throws(CgroupError) {
    guard let group = try CgroupRoot.groupsOfThisProcess().first else { throw .noTree }
    try prepareForStart(group)
  }

  static func prepareForStart(_ group: String) throws(CgroupError) {
    let control = "/.control"
    let unit =
      group.hasSuffix(control) ? String(group.dropLast(control.count)) : rootForChildren(of: group)
    let inner = "\(unit)/\(byItself)"
    do throws(SystemCallError) { try makeDirectory(inner, mode: 0o755) } catch {
      throw .failed(error)
    }
    // In such a unit the daemon is started again in `daemon`, and limits can stay.
    if access("\(unit)/\(bySystemd)", F_OK) == 0 { return }
    do throws(SystemCallError) { try turnOffControllers(below: unit) } catch {
      throw .failed(error)
    }
  }

  /// Disables the controllers in the groups below a group, too, those first: while a group passes a
  /// controller on, the kernel doesn't disable it in the group above. A worker may have groups of
  /// its own, such as those of containers.
  private static func turnOffControllers(below group: String) throws(SystemCallError) {
    do throws(SystemCallError) {
      for name in try listDirectory(group, onlyDirectories: true) {
        try turnOffControllers(below: "\(group)/\(name)")
      }
      let path = "\(group)/cgroup.subtree_control"
      let names = try readText(path).split(whereSeparator: \.isWhitespace)
      if names.isEmpty { return }
      try writeControl(path, names.map { "-\($0)" }.joined(separator: " "))
    } catch {
      // The group has been removed meanwhile.
      if !error.meansVanished && error.code != ENODEV { throw error }
    }
  }
}
