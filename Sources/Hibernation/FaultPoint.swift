import Glibc

/// Places in the protocol where the tests let the daemon die, as `kill -9` would. In the order in
/// which a hibernation and a resume pass them.
public enum FaultPoint: String, CaseIterable, Sendable {
  case stopped, seized, scanned, captured, committed
  case scratchMapped = "scratch-mapped"
  case evicting, evicted, restored, frozen, detached, rested
  case writingBack = "writing-back"
  case writtenBack = "written-back"
  case unlinked
  // Of a resume with missing pages only.
  case streamMarked = "stream-marked"
  case streamPrepared = "stream-prepared"
  case streaming
  case eventRead = "event-read"
  case streamed, unregistered
  // Of a recovery only.
  case recoverySeized = "recovery-seized"
  case registersBack = "registers-back"

  /// The one point that was asked for through DORMOUSE_FAULT when the process started.
  private static let armed = getenv("DORMOUSE_FAULT").flatMap {
    FaultPoint(rawValue: String(cString: $0))
  }

  @inline(__always)
  func pass() {
    if Self.armed == self { kill(getpid(), SIGKILL) }
  }
}
