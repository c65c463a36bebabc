import Glibc

/// The end of a wait. It counts only the time in which the machine is awake (CLOCK_MONOTONIC): a
/// machine's sleep in the middle of a wait is no reason to give up.
public struct Deadline: Hashable, Comparable, Sendable {
  /// The moment in nanoseconds of CLOCK_MONOTONIC.
  public let nanoseconds: Int64

  public init(in duration: Duration) {
    let (seconds, attoseconds) = duration.components
    let span = min(max(seconds, 0), 1_000_000_000) * 1_000_000_000 + attoseconds / 1_000_000_000
    nanoseconds = Clocks.monotonic + max(span, 0)
  }

  public static func < (one: Deadline, other: Deadline) -> Bool {
    one.nanoseconds < other.nanoseconds
  }

  public var hasPassed: Bool { Clocks.monotonic >= nanoseconds }

  /// The remaining time for poll(2). It is rounded up, so that a wait of this length reaches the
  /// deadline.
  public var remainingMilliseconds: Int32 {
    Int32(clamping: (max(0, nanoseconds - Clocks.monotonic) + 999_999) / 1_000_000)
  }
}

/// Repeats a check until it is true, for conditions for which the kernel has no event. It sleeps
/// between the checks, first 20 µs and then longer, up to 5 ms. It returns false if the deadline
/// passed first.
public func waitUntil<Failure: Error>(
  _ deadline: Deadline, _ condition: () throws(Failure) -> Bool
) throws(Failure) -> Bool {
  var pause: useconds_t = 20
  while true {
    if try condition() { return true }
    if deadline.hasPassed { return false }
    usleep(pause)
    pause = min(pause * 2, 5000)
  }
}

/// Waits for events on one descriptor. It returns false if the deadline passed first.
@discardableResult
public func pollDescriptor(
  _ raw: Int32, for events: Int32, until deadline: Deadline
) throws(SystemCallError) -> Bool {
  var entry = pollfd(fd: raw, events: Int16(events), revents: 0)
  while true {
    let ready = try systemCall("poll") { poll(&entry, 1, deadline.remainingMilliseconds) }
    if ready > 0 { return true }
    if deadline.hasPassed { return false }
  }
}
