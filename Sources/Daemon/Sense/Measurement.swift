import Hibernation
import Linux
import Policy

/// The memory of a worker, and how long the measurement took.
struct Measurement: Sendable {
  /// The footprint in bytes, as `Footprint.footprint` defines it, or an estimate.
  var footprint: ByteCount
  /// The file pages that the kernel may drop, in bytes.
  var reclaimable: Int64 = 0
  /// The share of `footprint` that processes share since a fork, in bytes; see
  /// `Footprint.sharedByFork`.
  var sharedByFork: Int64 = 0
  /// The share of `footprint` that is in swap, or in the image of a trim, in bytes.
  var swapped: Int64 = 0
  /// The anonymous memory in bytes. `sample` compares with it: if it has changed, the worker is
  /// measured again. It is read before the measurement, so that a page that is added meanwhile
  /// shows as a change.
  var anonymous: UInt64 = 0
  var at: Instant
  var took: Duration
  /// Why the figure isn't exact; nil if it is. It is the error of the exact measurement.
  var refusal: String?

  /// Measures processes, on a measuring thread. If their memory can't be examined closely (setuid,
  /// PR_SET_DUMPABLE), this measures what any user may see: anonymous memory.
  ///
  /// - Parameter missing: the memory of a worker that was resumed a moment ago, or trimmed, that
  ///   isn't back yet. It is read first: a page that is restored meanwhile is counted twice, and
  ///   not missed. If that is more than 1 MB of a trimmed worker, it is measured again: a footprint
  ///   that is too large may end the worker (`limits.footprint`).
  static func measure(_ pids: [Int32], _ missing: MissingBytes? = nil) -> Measurement {
    guard let missing else { return measure(pids, missing: .zero, isTrimmed: false) }
    for _ in 0..<3 {
      let before = missing.bytes
      let result = measure(
        pids, missing: ByteCount(Int64(clamping: before)), isTrimmed: missing.isTrimmed)
      let after = missing.bytes
      if !missing.isTrimmed || before < after + (1 << 20) { return result }
    }
    // Too little is counted while so much comes back. The next measurement corrects it.
    return measure(pids, missing: .zero, isTrimmed: true)
  }

  private static func measure(
    _ pids: [Int32], missing toCome: ByteCount, isTrimmed: Bool
  ) -> Measurement {
    let start = EventLoop.now
    let anonymous = pids.reduce(0) { $0 + anonymousMemory(of: $1) }
    var footprint: ByteCount
    var (reclaimable, sharedByFork, swapped): (Int64, Int64, Int64) = (0, 0, 0)
    var refusal: String?
    do throws(FootprintError) {
      let exact = try Footprint.measure(pids)
      (footprint, reclaimable) = (ByteCount(exact.footprint) + toCome, exact.reclaimable)
      (sharedByFork, swapped) = (exact.sharedByFork, exact.swapped)
    } catch {
      refusal = "\(error)"
      footprint = ByteCount(Int64(clamping: anonymous)) + toCome
    }
    if isTrimmed { swapped += toCome.bytes }
    let now = EventLoop.now
    return Measurement(
      footprint: footprint, reclaimable: reclaimable, sharedByFork: sharedByFork,
      swapped: swapped, anonymous: anonymous, at: now, took: now - start, refusal: refusal)
  }
}
