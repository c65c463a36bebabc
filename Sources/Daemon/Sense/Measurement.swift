import Hibernation
import Lifecycle
import Linux
import Policy

/// What was measured, and how long that took.
struct Measurement: Sendable {
  /// As `Footprint.footprint`, or roughly; bytes.
  var footprint: ByteCount
  /// File pages that the kernel may drop; bytes.
  var reclaimable: Int64 = 0
  /// Part of `footprint`: as `Footprint.sharedByFork`, bytes.
  var sharedByFork: Int64 = 0
  /// The value that `sample` compares with: it measures again where this has changed since. Read before the
  /// measurement, so that a page that comes meanwhile shows as a change. Bytes.
  var anonymous: UInt64 = 0
  var at: Instant
  var took: Duration
  /// Why the figure isn't exact: the error that a close look failed with.
  var refusal: String?

  /// On a measuring thread. If the memory can't be examined closely (setuid, PR_SET_DUMPABLE), measures what
  /// any user may see: anonymous memory.
  ///
  /// - Parameter missing: what is still to come of a worker that was resumed a moment ago. Read first: a page
  ///   that comes meanwhile is counted twice rather than not at all.
  static func measure(_ pids: [Int32], _ missing: MissingBytes? = nil) -> Measurement {
    let start = EventLoop.now
    let toCome = ByteCount(Int64(clamping: missing?.bytes ?? 0))
    let anonymous = pids.reduce(0) { $0 + anonymousMemory(of: $1) }
    var footprint: ByteCount
    var (reclaimable, sharedByFork): (Int64, Int64) = (0, 0)
    var refusal: String?
    do throws(FootprintError) {
      let found = try Footprint.measure(pids)
      (footprint, reclaimable) = (ByteCount(found.footprint) + toCome, found.reclaimable)
      sharedByFork = found.sharedByFork
    } catch {
      refusal = "\(error)"
      footprint = ByteCount(Int64(clamping: anonymous))
    }
    let now = EventLoop.now
    return Measurement(
      footprint: footprint, reclaimable: reclaimable, sharedByFork: sharedByFork,
      anonymous: anonymous, at: now, took: now - start, refusal: refusal)
  }
}
