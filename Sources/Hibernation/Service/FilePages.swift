import Glibc
import Linux

/// Clean pages of files (code, mostly) that only a hibernated worker has in memory. The kernel
/// drops them by itself, but late, because they were used recently. A worker that sleeps for a long
/// time doesn't need them.
///
/// MADV_PAGEOUT skips each page that another process maps too. So the call isn't worth its cost for
/// a mapping of which more than a tenth is shared with other processes.
public struct FilePages: Sendable {
  private var rangesByProcess: [(identity: ProcessIdentity, ranges: [PageRange])] = []

  /// The result of dropping pages.
  public struct Outcome: Sendable {
    /// The number of bytes that left memory.
    public var dropped: UInt64 = 0
    /// The reason why not all pages were dropped.
    public var refusal: SystemCallError?
  }

  /// Records the mappings of a process whose pages may be dropped. Call it while the process is
  /// seized.
  mutating func record(_ mappings: [MemoryMapping], of identity: ProcessIdentity) {
    let exclusive = mappings.filter {
      $0.hasFile && !$0.shared && $0.resident > $0.anonymous
        && $0.proportional >= $0.resident / 10 * 9
        && $0.flags.isDisjoint(with: [.deviceMemory, .pureFrames, .locked])
    }
    rangesByProcess.append((identity, exclusive.map(\.range)))
  }

  /// Drops the recorded pages. Call it while the processes are at rest. A failure only leaves more
  /// memory in use.
  func pageOut() -> Outcome {
    var outcome = Outcome()
    for (identity, ranges) in rangesByProcess {
      let before = Self.filePages(of: identity.pid)
      do throws(SystemCallError) {
        let pidfd = try Descriptor.pidfd(of: identity.pid)
        guard identity.life == .lives else { continue }
        for range in ranges { try range.pageOut(of: identity.pid, through: pidfd) }
      } catch { if !error.meansVanished { outcome.refusal = error } }
      let after = Self.filePages(of: identity.pid)
      outcome.dropped += before > after ? before - after : 0
    }
    return outcome
  }

  /// Returns RssFile, in bytes.
  private static func filePages(of pid: Int32) -> UInt64 {
    (try? ProcessStatus.read(pid)).map { UInt64(clamping: $0.residentFileBytes) } ?? 0
  }
}
