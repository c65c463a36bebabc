import CLinux

/// User namespaces (user_namespaces(7)). Containers and sandboxes have their own.
public enum UserNamespace {
  /// Whether a process is in the user namespace of this process. It is false if that can't be
  /// read, for example because the process has ended.
  public static func isShared(with pid: Int32) -> Bool {
    // A kernel without user namespaces has none of these files, so both numbers are 0.
    clinux_inode_at("/proc/self/ns/user") == clinux_inode_at("/proc/\(pid)/ns/user")
  }
}
