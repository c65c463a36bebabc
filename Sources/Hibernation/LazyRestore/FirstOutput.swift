import Linux

/// Finds out when a resumed worker first writes to something: a terminal, a pipe, a socket, a file. What it sends with send(2) and
/// the like isn't counted by the kernel; then the first output stays unseen.
///
/// A look takes 10 µs for each process.
struct FirstOutput {
  /// What they had written before they ran. A process that can't be asked isn't in it.
  private var before: [(pid: Int32, writes: ProcessWrites)] = []
  private(set) var isSeen = false
  /// Time of the monotonic clock, in ns.
  private var nextLook: Int64 = 0

  /// - Parameter pids: don't run yet. None: no output is ever seen.
  init(of pids: [Int32] = []) {
    for pid in pids {
      // Without the permission to read it (Yama) its output stays unseen.
      if let writes = try? ProcessWrites.read(pid) { before.append((pid, writes)) }
    }
  }

  /// Looks at most once in a millisecond.
  mutating func look() -> Bool {
    let now = Clocks.monotonic
    if isSeen || now < nextLook { return isSeen }
    nextLook = now + 1_000_000
    isSeen = before.contains { pid, writes in
      // A process that has ended writes no more.
      guard let present = try? ProcessWrites.read(pid) else { return false }
      // Writes of 8 bytes wake threads (eventfd): node's do that before they have done anything.
      return present.bytes &- writes.bytes != (present.calls &- writes.calls) &* 8
    }
    return isSeen
  }
}
