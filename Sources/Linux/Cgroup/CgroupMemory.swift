import Glibc

extension WorkerCgroup {
  /// Limits the memory of all processes in the group to a number of bytes (`memory.max`). The limit
  /// needs the memory controller, which is enabled here if the groups above permit it.
  public func limitMemory(to bytes: Int64) throws(SystemCallError) {
    if access("\(path)/memory.max", F_OK) != 0 {
      let parent = CgroupRoot(path: String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]))
      parent.turnOn(["memory"], includingAbove: true)
    }
    try writeControl("\(path)/memory.max", "\(bytes)")
  }

  /// The number of the group's processes that the kernel's OOM killer has ended, because of the
  /// group's own limit or because the machine had no memory left. It is nil if the group has no
  /// memory controller.
  public func killedForMemory() -> Int? {
    guard let bytes = try? readRecord("\(path)/memory.events") else { return nil }
    return Self.killedForMemory(in: bytes)
  }

  static func killedForMemory(in bytes: [UInt8]) -> Int? {
    value(of: "oom_kill ", in: bytes)?.number()
  }
}
