import Glibc

// Reclaim on request (`memory.reclaim`, Linux 5.19).

extension WorkerCgroup {
  /// Whether this process may make the kernel reclaim memory of the group. An external group is
  /// left to its manager.
  public var canReclaim: Bool { !isExternal && access("\(path)/memory.reclaim", W_OK) == 0 }

  /// The length of one request, which may block for long.
  private static let bytesPerRequest: Int64 = 8 << 20

  /// The options that keep the pages of files, the newest first. A kernel that doesn't know one
  /// returns EINVAL.
  private static let options = [" swappiness=max", " swappiness=200", ""]

  /// Makes the kernel reclaim a number of bytes, of anonymous memory only if it has an option for
  /// that. It ends at the deadline, or when the kernel finds no more.
  public func reclaim(_ bytes: Int64, until deadline: Deadline) throws(SystemCallError) {
    var options = Self.options[...]
    var left = bytes
    var shortfalls = 0
    while left > 0, shortfalls < 3, !deadline.hasPassed, let option = options.first {
      let amount = min(left, Self.bytesPerRequest)
      do throws(SystemCallError) {
        try writeControl("\(path)/memory.reclaim", "\(amount)\(option)")
        shortfalls = 0
      } catch {
        if error.code == EINVAL, options.count > 1 {
          options.removeFirst()
          continue
        }
        // The kernel has reclaimed less than that.
        guard error.code == EAGAIN else { throw error }
        shortfalls += 1
      }
      left -= amount
    }
  }
}
