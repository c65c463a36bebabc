import CLinux
import Glibc

/// The areas that threads share with the kernel for restartable sequences (rseq(2)). glibc 2.35 and
/// later has one in each thread's control block.
///
/// The kernel writes the numbers of the processor, the node and the memory context there whenever
/// the thread continues elsewhere. Newer kernels (seen on 7.3) compare these numbers first with
/// those that they wrote last, and end the process by SIGSEGV if they differ. An image has earlier
/// numbers. No write from outside could set the right ones either: a thread that is borrowed, or
/// that moves from a trace stop to the freezer, can get new ones at any time while its page is
/// away.
///
/// So these pages stay in memory, from before the first page is freed until the thread ends. The
/// area is at every moment as the kernel wrote it. The program can't write there meanwhile, because
/// it doesn't run.
public struct RestartableSequences: Sendable {
  /// The areas by thread ID.
  private let areas: [Int32: PageRange]

  /// The address ranges of all areas. All pages that they touch must stay in memory.
  public var ranges: [Range<UInt64>] { areas.values.map { $0.address..<$0.end } }

  /// Reads the areas.
  ///
  /// - Parameter session: all threads of a process, stopped.
  public init(of session: TraceSession) throws(TraceError) {
    var areas: [Int32: PageRange] = [:]
    for thread in session.threads {
      areas[thread.tid] = try session.rseqArea(of: thread.tid)
    }
    self.areas = areas
  }

  /// Whether a thread is inside a sequence that it has begun and not committed.
  ///
  /// The kernel sends such a thread back to the sequence's start when it continues. If the thread
  /// were parked and ran there, the kernel would forget that, and the thread would commit a
  /// sequence that was interrupted.
  public func isInside(_ thread: TracedThread, memory: ProcessMemory) -> Bool {
    // A system call inside a sequence isn't permitted.
    guard let area = areas[thread.tid], area.length >= 16, !thread.isWaiting else { return false }
    // If the critical section's descriptor can't be read, there is none.
    guard let pointer = try? memory.readWords(at: area.address + 8, count: 1).first, pointer != 0,
      let words = try? memory.readWords(at: pointer, count: 3)
    else { return false }
    // The words of struct rseq_cs are: version and flags, the first address, the length.
    return thread.registers.instruction &- words[1] < words[2]
  }
}

extension TraceSession {
  /// The area of a thread. It is `nil` if the thread has none, or if this kernel doesn't show it.
  /// Such a kernel doesn't compare it either: see `KernelFeatures.restoreObstacle`.
  fileprivate func rseqArea(of tid: Int32) throws(TraceError) -> PageRange? {
    var area = PageRange(address: 0, length: 0)
    let result = clinux_ptrace_get_rseq_area(tid, &area.address, &area.length)
    if result == -ESRCH { throw .vanished(pid: pid) }
    return result == 1 && area.address <= .max - area.length ? area : nil
  }
}

extension ProcessMemory {
  fileprivate func readWords(at address: UInt64, count: Int) throws(SystemCallError) -> [UInt64] {
    try readBytes(at: address, count: count * 8).withUnsafeBytes { bytes in
      (0..<count).map { bytes.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self) }
    }
  }
}
