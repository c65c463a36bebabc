import Linux

/// Detects when a resumed worker first writes to something: a terminal, a pipe, a socket, a file.
/// The kernel doesn't count what is sent with send(2) and the like; such a first output stays
/// unseen.
///
/// A check takes 10 µs for each process.
struct FirstOutput {
  /// The write counters of the processes before they ran. A process whose counters can't be read
  /// isn't in it.
  private var before: [(pid: Int32, writes: ProcessWrites)] = []
  private(set) var isSeen = false
  /// The time of the next check, in ns of the monotonic clock.
  private var nextCheck: Int64 = 0

  /// - Parameter pids: processes that don't run yet. If there are none, no output is ever seen.
  init(of pids: [Int32] = []) {
    for pid in pids {
      // The file may not be readable (Yama). The process's output then stays unseen.
      if let writes = try? ProcessWrites.read(pid) { before.append((pid, writes)) }
    }
  }

  /// Checks at most once in a millisecond. Returns true if output was seen, now or before.
  mutating func check() -> Bool {
    let now = Clocks.monotonic
    if isSeen || now < nextCheck { return isSeen }
    nextCheck = now + 1_000_000
    isSeen = before.contains { pid, writes in
      // A process that has ended writes no more.
      guard let present = try? ProcessWrites.read(pid) else { return false }
      // Writes of 8 bytes wake threads (eventfd): node's do that before they have done anything.
      return present.bytes &- writes.bytes != (present.calls &- writes.calls) &* 8
    }
    return isSeen
  }
}
