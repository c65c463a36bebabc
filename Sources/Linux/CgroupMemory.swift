import Glibc

extension WorkerCgroup {
  /// Limits the memory of all in the group (`memory.max`; bytes). That takes the memory controller, which
  /// is turned on here where the groups above let us.
  public func limitMemory(to bytes: Int64) throws(SystemCallError) {
    if access("\(path)/memory.max", F_OK) != 0 {
      let parent = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
      let above = String(parent[..<(parent.lastIndex(of: "/") ?? parent.startIndex)])
      // Refused where processes are in the group itself, as the daemon may be; or given already.
      _ = try? writeControl("\(above)/cgroup.subtree_control", "+memory")
      _ = try? writeControl("\(parent)/cgroup.subtree_control", "+memory")
    }
    try writeControl("\(path)/memory.max", "\(bytes)")
  }
}
