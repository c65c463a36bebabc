import Glibc

/// Cgroups that another program has made: a service manager's units, containers.
extension WorkerCgroup {
  /// Opens the group that the operator names: by an absolute directory, or by the name of a unit
  /// (`redis.service`, or `redis`), which is searched for in the cgroup2 trees of this process.
  ///
  /// - Throws: `notFound`, or `ambiguous` if more than one group has the name.
  public static func find(_ name: String) throws(CgroupError) -> WorkerCgroup {
    if name.hasPrefix("/") { return try open(name) }
    let wanted = name.contains(".") ? [name] : [name + ".service", name + ".scope", name]
    var paths: [String] = []
    do throws(SystemCallError) {
      for mount in try Mount.all() where mount.type == "cgroup2" {
        for name in wanted where paths.isEmpty { paths += search(mount.point, name, depth: 8) }
      }
    } catch { throw .failed(error) }
    guard let first = paths.first else { throw .notFound(name) }
    if paths.count > 1 { throw .ambiguous(name, paths.sorted()) }
    return try open(first)
  }

  private static func open(_ path: String) throws(CgroupError) -> WorkerCgroup {
    if access("\(path)/cgroup.procs", F_OK) != 0 { throw .notFound(path) }
    return try WorkerCgroup(path: path, isExternal: true)
  }

  private static func search(_ directory: String, _ name: String, depth: Int) -> [String] {
    // A group that has been removed or can't be listed is skipped.
    guard depth > 0, let children = try? listDirectory(directory, onlyDirectories: true) else {
      return []
    }
    return children.flatMap { child in
      let path = "\(directory)/\(child)"
      return child == name ? [path] : search(path, name, depth: depth - 1)
    }
  }
}
