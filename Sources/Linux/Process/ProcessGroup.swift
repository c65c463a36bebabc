import Glibc

/// Moves this process into a process group of its session. A failure is ignored; a group that has
/// ended can't be joined.
public func joinGroup(_ group: Int32) { setpgid(0, group) }
