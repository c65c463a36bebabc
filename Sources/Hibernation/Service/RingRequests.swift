import CLinux
import Linux

extension Eligibility {
  /// Returns the reason why the pages of a process with this ring can't be moved, from the ring's
  /// fdinfo, or `nil` if they can. If the kernel doesn't show enough, they can't: data would be
  /// lost silently.
  static func ringObstacle(_ info: String) -> String? {
    var fields: [Substring: Int] = [:]
    var pollEntries = 0
    var inPollList = false
    for line in info.split(separator: "\n") {
      if inPollList, line.hasPrefix(" ") { pollEntries += 1 }
      guard let colon = line.firstIndex(of: ":"), !line.hasPrefix(" ") else { continue }
      inPollList = line[..<colon] == "PollList"
      fields[line[..<colon]] = Int(
        line[line.index(after: colon)...].drop { $0 == "\t" || $0 == " " })
    }
    guard let buffers = fields["UserBufs"], let submitted = fields["SqTail"],
      let taken = fields["SqHead"], let completed = fields["CqTail"], let seen = fields["CqHead"]
    else { return "uses io_uring, and this kernel does not show its requests" }
    if buffers > 0 { return "has \(buffers) io_uring buffers registered with the kernel" }
    if submitted != taken || completed != seen || pollEntries > 0 {
      return "has io_uring requests in flight"
    }
    // Each request has one answer. A ring whose requests get none or several can't be distinguished
    // from one whose requests are with the kernel's threads.
    if UInt32(truncatingIfNeeded: taken) != UInt32(truncatingIfNeeded: completed) {
      return "has io_uring requests in flight: \(taken) submitted, \(completed) completed"
    }
    return nil
  }

  /// Checks rings that are mapped without a descriptor: the thread uses a number of its own for
  /// such a ring (IORING_REGISTER_RING_FDS). Its requests can't be seen. A ring that isn't mapped
  /// is in memory of the program, which the kernel has pinned. Before Linux 5.16 all rings have one
  /// inode, and such rings didn't exist.
  static func checkRings(
    _ mappings: [MemoryMapping], of process: ProcessStat
  ) throws(HibernationError) {
    let rings = Set(mappings.filter { $0.name == ringName }.map(\.inode))
    let directory = "/proc/\(process.pid)/fd"
    let names = try inspect { () throws(SystemCallError) in try listDirectory(directory) } ?? []
    let open = names.filter { readLink("\(directory)/\($0)") == ringName }.map {
      clinux_inode_at("\(directory)/\($0)")
    }
    // 0: it was closed since the directory was read.
    if open.contains(where: { $0 != 0 && !rings.contains($0) }) {
      throw refusal(
        process,
        "has an io_uring that it doesn't map: the kernel may write to its memory "
          + "(IORING_SETUP_NO_MMAP)", aftermath: .intact)
    }
    if rings.isSubset(of: open) { return }
    throw refusal(
      process, "uses io_uring through a registered ring, whose requests the kernel does not show",
      aftermath: .intact)
  }

  static let ringName = "anon_inode:[io_uring]"
}
