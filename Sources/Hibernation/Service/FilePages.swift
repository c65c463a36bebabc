import Glibc
import Linux

/// Clean pages of files (code, mostly) that only a hibernated worker has in memory. The kernel drops
/// those by itself, but late: they were used a moment ago. Who sleeps for long doesn't need them.
///
/// MADV_PAGEOUT leaves alone what another process maps too, page by page. So a mapping of which
/// others have a large part isn't worth the call.
public struct FilePages: Sendable {
  private var places: [(identity: ProcessIdentity, ranges: [PageRange])] = []

  /// What became of it.
  public struct Outcome: Sendable {
    /// Bytes that left memory.
    public var dropped: UInt64 = 0
    /// Why not all of them.
    public var refusal: SystemCallError?
  }

  /// While the process is held.
  mutating func record(_ mappings: [MemoryMapping], of identity: ProcessIdentity) {
    let own = mappings.filter {
      $0.hasFile && !$0.shared && $0.resident > $0.anonymous
        && $0.proportional >= $0.resident / 10 * 9
        && $0.flags.isDisjoint(with: [.deviceMemory, .pureFrames, .locked])
    }
    places.append((identity, own.map(\.range)))
  }

  /// While it rests. What fails changes nothing but memory in use.
  func pushOut() -> Outcome {
    var outcome = Outcome()
    for (identity, ranges) in places {
      let before = Self.filePages(of: identity.pid)
      do throws(SystemCallError) {
        let pidfd = try Descriptor.pidfd(of: identity.pid)
        guard identity.isAlive else { continue }
        for range in ranges { try range.pageOut(of: identity.pid, through: pidfd) }
      } catch { if !error.meansVanished { outcome.refusal = error } }
      let after = Self.filePages(of: identity.pid)
      outcome.dropped += before > after ? before - after : 0
    }
    return outcome
  }

  /// RssFile, in bytes.
  private static func filePages(of pid: Int32) -> UInt64 {
    (try? ProcessStatus.read(pid)).map { UInt64(clamping: $0.residentFileBytes) } ?? 0
  }
}
