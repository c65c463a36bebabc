import Glibc
import Synchronization

/// Places in the protocol where the tests let the daemon die, as `kill -9` would. In the order in
/// which a hibernation and a resume pass them.
public enum FaultPoint: String, CaseIterable, Sendable {
  case stopped, seized, scanned, captured, committed
  case scratchMapped = "scratch-mapped"
  case evicting, evicted, restored, frozen, detached, rested
  case writingBack = "writing-back"
  case writtenBack = "written-back"
  case unlinked
  // Of resumes with missing pages only; the first one when they are prepared for.
  case userfaultOpened = "userfault-opened"
  case streamMarked = "stream-marked"
  case registered
  case streamPrepared = "stream-prepared"
  case streaming
  case eventRead = "event-read"
  case streamed, unregistered, thawed
  // Of a recovery only.
  case recoverySeized = "recovery-seized"
  case registersBack = "registers-back"

  /// The one point that was asked for through DORMOUSE_FAULT when the process started: its name, or
  /// `name@2` for the second time that it is passed.
  private static let armed: (point: FaultPoint, time: Int)? = {
    guard let wish = getenv("DORMOUSE_FAULT") else { return nil }
    let words = String(cString: wish).split(separator: "@")
    guard let name = words.first, let point = FaultPoint(rawValue: String(name)) else { return nil }
    return (point, words.count > 1 ? Int(words[1]) ?? 1 : 1)
  }()
  private static let passed = Atomic(0)

  @inline(__always)
  func pass() {
    guard let armed = Self.armed, armed.point == self else { return }
    let count = Self.passed.add(1, ordering: .relaxed).newValue
    if count == armed.time { kill(getpid(), SIGKILL) }
  }
}
