import Glibc
import Linux
import Synchronization

/// Places in the protocol where the tests let the daemon die, as `kill -9` would. In the order in
/// which a hibernation and a resume pass them.
public enum FaultPoint: String, CaseIterable, Sendable {
  case stopped, seized, scanned, captured, synced, committed
  case scratchMapped = "scratch-mapped"
  case evicting, evicted, restored, frozen, detached, rested
  case writingBack = "writing-back"
  case writtenBack = "written-back"
  case unlinked
  // With overlays only.
  case trackerOpened = "tracker-opened"
  case baseKept = "base-kept"
  case baseRemoved = "base-removed"
  // Of lazy restores only; the first one when they are prepared for.
  case userfaultOpened = "userfault-opened"
  case fillMarked = "fill-marked"
  case registered
  case fillPrepared = "fill-prepared"
  case filling
  case eventRead = "event-read"
  case filled, unregistered, thawed
  // Of a recovery only.
  case recoverySeized = "recovery-seized"
  case registersBack = "registers-back"

  /// The one point that was asked for through DORMOUSE_FAULT when the process started: `POINT`, or
  /// `POINT:2` (or `POINT@2`) for the second time that it is passed.
  private static let armed: (point: FaultPoint, pass: Int)? = {
    guard let text = getenv("DORMOUSE_FAULT").map({ String(cString: $0) }) else { return nil }
    let parts = text.split(maxSplits: 1) { $0 == ":" || $0 == "@" }.map(String.init)
    guard let point = parts.first.flatMap(FaultPoint.init(rawValue:)) else { return nil }
    return (point, parts.count > 1 ? Int(parts[1]) ?? 1 : 1)
  }()
  private static let passes = Atomic(0)

  @inline(__always)
  func pass() {
    guard let armed = Self.armed, armed.point == self else { return }
    if Self.passes.add(1, ordering: .relaxed).newValue == armed.pass {
      sendSignal(SIGKILL, to: getpid())
    }
  }
}
