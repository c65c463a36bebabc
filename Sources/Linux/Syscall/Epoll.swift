import CLinux
import Glibc

/// An epoll instance: reports which of many descriptors have events.
public final class Epoll: Sendable {
  /// The instance's own descriptor. It is readable while any of the registered descriptors has
  /// events.
  public let descriptor: Descriptor

  public struct Interest: OptionSet, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public static let readable = Interest(rawValue: UInt32(CLINUX_EPOLLIN))
    public static let writable = Interest(rawValue: UInt32(CLINUX_EPOLLOUT))
    /// PSI triggers and cgroup.events report their events in this way.
    public static let priority = Interest(rawValue: UInt32(CLINUX_EPOLLPRI))
    public static let error = Interest(rawValue: UInt32(CLINUX_EPOLLERR))
    public static let hangUp = Interest(rawValue: UInt32(CLINUX_EPOLLHUP))
    public static let peerHangUp = Interest(rawValue: UInt32(CLINUX_EPOLLRDHUP))
    /// What arrives is reported once, and not as long as it is unread (EPOLLET).
    public static let edgeTriggered = Interest(rawValue: 1 << 31)
  }

  public struct Ready: Sendable {
    public var token: UInt64
    public var what: Interest
  }

  public init() throws(SystemCallError) {
    descriptor = Descriptor(owning: try shim("epoll_create1") { clinux_epoll_create() })
  }

  /// - Parameter subject: what an error names. `nil`: the descriptor's number.
  public func add(
    _ fd: Int32, _ interest: Interest, token: UInt64,
    on subject: @autoclosure () -> String? = nil
  ) throws(SystemCallError) {
    try shim("epoll_ctl", on: subject() ?? "descriptor \(fd)") {
      clinux_epoll_add(descriptor.raw, fd, interest.rawValue, token)
    }
  }

  public func modify(_ fd: Int32, _ interest: Interest, token: UInt64) throws(SystemCallError) {
    try shim("epoll_ctl", on: "descriptor \(fd)") {
      clinux_epoll_modify(descriptor.raw, fd, interest.rawValue, token)
    }
  }

  /// Removes a descriptor. It may be one that wasn't added.
  public func remove(_ fd: Int32) { _ = clinux_epoll_remove(descriptor.raw, fd) }

  /// Waits for events and returns at most 64 of them. It waits without limit if `milliseconds` is
  /// negative. The result is empty after the timeout, or if a signal interrupted the wait.
  public func wait(
    milliseconds: Int32, on subject: String = ""
  ) throws(SystemCallError) -> [Ready] {
    var events = [clinux_event](repeating: clinux_event(), count: 64)
    let count = clinux_epoll_wait(descriptor.raw, &events, 64, milliseconds)
    if count == -4 { return [] }  // EINTR
    if count < 0 { throw SystemCallError("epoll_wait", on: subject, code: -count) }
    return events[..<Int(count)].map {
      Ready(token: $0.data, what: Interest(rawValue: $0.events))
    }
  }

  /// Returns all events of an edge-triggered set that have arrived since the last call.
  public func drain() -> [Ready] {
    var all: [Ready] = []
    // An error ends the list, too.
    while let ready = try? wait(milliseconds: 0), !ready.isEmpty { all += ready }
    return all
  }
}

/// Wakes an event loop from another thread: its descriptor is readable from `signal` until `clear`.
public final class EventCounter: Sendable {
  public let descriptor: Descriptor

  public init() throws(SystemCallError) {
    descriptor = Descriptor(owning: try shim("eventfd") { clinux_eventfd() })
  }

  public func signal() {
    var one: UInt64 = 1
    _ = withUnsafeBytes(of: &one) { write(descriptor.raw, $0.baseAddress, 8) }
  }

  // If there is nothing to read (EAGAIN), it is clear already.
  public func clear() { _ = try? descriptor.read(upTo: 8) }
}

/// A timer whose descriptor becomes readable at a moment of CLOCK_BOOTTIME, which includes the
/// machine's sleep.
public final class DeadlineTimer: Sendable {
  public let descriptor: Descriptor

  public init() throws(SystemCallError) {
    descriptor = Descriptor(owning: try shim("timerfd_create") { clinux_timerfd_create() })
  }

  /// Sets the moment in nanoseconds of CLOCK_BOOTTIME; `nil` disarms the timer. A moment in the
  /// past fires at once.
  public func set(_ nanoseconds: Int64?) {
    _ = clinux_timerfd_set(descriptor.raw, nanoseconds.map { max($0, 1) } ?? 0)
  }

  // If there is nothing to read (EAGAIN), it is clear already.
  public func clear() { _ = try? descriptor.read(upTo: 8) }
}
