import Glibc
import Linux
import Synchronization

/// The points in the protocol at which the tests let the daemon die as by `kill -9`, in the order
/// in which a hibernation and a resume pass them.
public enum FaultPoint: String, CaseIterable, Sendable {
  case stopped, seized, scanned, captured, synced, committed
  case scratchMapped = "scratch-mapped"
  case evicting, evicted, restored, frozen, detached, rested
  case writingBack = "writing-back"
  case writtenBack = "written-back"
  case unlinked
  // These points are passed with overlays only.
  case trackerOpened = "tracker-opened"
  case baseKept = "base-kept"
  case baseRemoved = "base-removed"
  // These points are passed with lazy restores only, the first one when the hibernation prepares
  // for them.
  case userfaultOpened = "userfault-opened"
  /// The worker has an open /dev/userfaultfd, for a daemon that isn't root's.
  case devicePassed = "device-passed"
  case fillMarked = "fill-marked"
  case registered
  case fillPrepared = "fill-prepared"
  case filling
  case eventRead = "event-read"
  /// A forked child has all of its pages, and the journal doesn't say so yet.
  case childFilled = "child-filled"
  case filled
  /// The worker is trimmed: its pager fills only what it needs.
  case trimmed
  // These points are passed in a trim of a trimmed worker.
  case trimHandedOver = "trim-handed-over"
  case trimUnregistered = "trim-unregistered"
  case handingOver = "handing-over"
  case unregistered, thawed
  // These points are passed in a trim that borrows threads, the last one in its repair.
  case trimStopped = "trim-stopped"
  case trimRecorded = "trim-recorded"
  case trimBorrowed = "trim-borrowed"
  case trimAdvised = "trim-advised"
  case trimReturned = "trim-returned"
  case trimContinuing = "trim-continuing"
  case trimRepairing = "trim-repairing"
  // These points are passed in a recovery only.
  case recoverySeized = "recovery-seized"
  case borrowedAgain = "borrowed-again"
  case registersBack = "registers-back"

  /// The one point that DORMOUSE_FAULT names when the process starts: `POINT`, or `POINT:2` (or
  /// `POINT@2`) for the second pass.
  private static let armed: (point: FaultPoint, pass: Int)? = {
    guard let text = getenv("DORMOUSE_FAULT").map({ String(cString: $0) }) else { return nil }
    let fields = text.split(maxSplits: 1) { $0 == ":" || $0 == "@" }.map(String.init)
    guard let point = fields.first.flatMap(FaultPoint.init(rawValue:)) else { return nil }
    return (point, fields.count > 1 ? Int(fields[1]) ?? 1 : 1)
  }()
  private static let passes = Atomic(0)
  /// With DORMOUSE_FAULT_STOPS the daemon stops there (SIGSTOP) instead, and a test continues it.
  private static let stops = getenv("DORMOUSE_FAULT_STOPS") != nil

  @inline(__always)
  func pass() {
    guard let armed = Self.armed, armed.point == self else { return }
    guard Self.passes.add(1, ordering: .relaxed).newValue == armed.pass else { return }
    // `raise` doesn't return before this thread has stopped.
    if Self.stops { raise(SIGSTOP) } else { sendSignal(SIGKILL, to: getpid()) }
  }
}
