import Glibc

/// This process joins a process group of its session. A group that has ended can't be joined.
public func joinGroup(_ group: Int32) { setpgid(0, group) }
