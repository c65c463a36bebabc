import CLinux
import Glibc

/// The moment at which a worker would continue by itself: the end of a timeout that one of its
/// threads waits for, or of a timer that it has set.
///
/// Timerfds are in `/proc/PID/fdinfo` (proc_pid_fdinfo(5)); `TimedWaits` reads the timeouts of
/// calls. The ends of alarm(2), setitimer(2) and timer_create(2) can't be read; they cause a
/// signal, which stays pending.
public struct DueTime: Hashable, Sendable {
  public enum Source: Hashable, Sendable { case timer, timeout }

  public var source: Source
  /// The time from now.
  public var remaining: Duration
  /// The whole time that was requested, or the interval of a repeating timer. It is nil if only the
  /// end is known.
  public var whole: Duration?

  public init(source: Source, remaining: Duration, whole: Duration?) {
    self.source = source
    self.remaining = remaining
    self.whole = whole
  }

  /// Reads the timerfds of processes. Timers that can't be read are left out.
  public static func timers(of tree: ProcessTree) -> [DueTime] { tree.pids.flatMap(timers) }
}

// MARK: - timerfds

extension DueTime {
  private static func timers(of pid: Int32) -> [DueTime] {
    let directory = "/proc/\(pid)/fd"
    // A process that has ended has no timers.
    return ((try? listNumbers(directory)) ?? []).compactMap { number -> DueTime? in
      guard readLink("\(directory)/\(number)") == "anon_inode:[timerfd]",
        // The result is nil if the timer has been closed meanwhile.
        let bytes = try? readFile("/proc/\(pid)/fdinfo/\(number)")
      else { return nil }
      return DueTime(fdinfo: bytes)
    }
  }

  /// The result is nil if the timer isn't armed. One that fires once and has expired is due now,
  /// as long as the program hasn't read it: it may have expired since the program stopped.
  init?(fdinfo bytes: [UInt8]) {
    func time(_ key: StaticString) -> Duration { value(of: key, in: bytes).flatMap(pair) ?? .zero }
    let (remaining, interval) = (time("it_value:"), time("it_interval:"))
    let expirations: UInt64 = value(of: "ticks:", in: bytes)?.number() ?? 0
    guard remaining > .zero || expirations > 0 else { return nil }
    self.init(source: .timer, remaining: remaining, whole: interval > .zero ? interval : nil)
  }
}

/// Parses `(seconds, nanoseconds)`.
private func pair(_ text: ArraySlice<UInt8>) -> Duration? {
  let digits = text.split { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  guard digits.count == 2, let seconds: Int64 = digits[0].number(),
    let nanoseconds: Int64 = digits[1].number()
  else { return nil }
  return .seconds(seconds) + .nanoseconds(nanoseconds)
}

// MARK: - timeouts of system calls

/// A system call in which a thread waits: one line of `/proc/PID/task/TID/syscall`.
struct WaitingCall: Hashable {
  var number: Int64
  /// The six arguments.
  var arguments: [UInt64]
  var stack: UInt64 = 0
  var instruction: UInt64 = 0
}

extension WaitingCall {
  static func read(thread: Int32, of pid: Int32) -> WaitingCall? {
    // A thread that has ended waits in no call.
    (try? current(thread: thread, of: pid)) ?? nil
  }

  /// Reads the call in which a thread waits; `nil` if it is in no call.
  static func current(thread: Int32, of pid: Int32) throws(SystemCallError) -> WaitingCall? {
    WaitingCall(try readText("/proc/\(pid)/task/\(thread)/syscall"))
  }

  /// Whether the timeout of a stopped thread's call begins again with the call. It is true if /proc
  /// doesn't show the call.
  static func mayBeginAgain(thread: Int32, of pid: Int32) -> Bool {
    guard let call = read(thread: thread, of: pid) else { return clinux_stop_hides_calls() == 1 }
    return call.again != CLINUX_AGAIN_AS_IT_IS
  }

  /// Returns this call if the thread still waits in it now that it is stopped or frozen. Otherwise
  /// it returns the call that the thread is in.
  func current(_ thread: Int32, of pid: Int32) -> WaitingCall? {
    // A thread that has ended waits in no call.
    (try? readText("/proc/\(pid)/task/\(thread)/syscall")).flatMap {
      current(shownAs: $0, isHidden: clinux_stop_hides_calls() == 1)
    }
  }

  /// Returns this call if `text` shows that the thread is still in it. Otherwise it returns the
  /// call that `text` shows, if any.
  ///
  /// - Parameters:
  ///   - text: the line that /proc shows now.
  ///   - isHidden: true if /proc doesn't show the call of a stopped thread.
  func current(shownAs text: String, isHidden: Bool) -> WaitingCall? {
    if let call = WaitingCall(text) { return call }
    // The line is `-1 SP PC`, or `running`.
    let fields = text.split { $0 == " " || $0 == "\n" }
    guard isHidden, fields.count == 3, fields[0] == "-1",
      UInt64(fields[1].dropFirst(2), radix: 16) == stack,
      let counter = UInt64(fields[2].dropFirst(2), radix: 16)
    else { return nil }
    let candidates = [instruction, instruction &- UInt64(clinux_call_instruction_length())]
    return candidates.contains(counter) ? self : nil
  }

  /// Whether this is the same call, perhaps restarted by the kernel.
  func isSame(as earlier: WaitingCall) -> Bool {
    var call = self
    if clinux_is_restart(number) == 1 { call.number = earlier.number }
    return call == earlier
  }

  /// Parses a line; the result is nil if the thread is in no call. A thread that the kernel has
  /// made for io_uring shows the call that started it, with the instruction 0.
  init?(_ line: String) {
    let fields = line.split { $0 == " " || $0 == "\n" }
    guard fields.count == 9, let number = Int64(fields[0]), number >= 0 else { return nil }
    let values = fields[1...].compactMap { UInt64($0.dropFirst(2), radix: 16) }
    guard values.count == 8, values[7] != 0 else { return nil }
    self.init(
      number: number, arguments: Array(values[..<6]), stack: values[6], instruction: values[7])
  }

  /// The time for which a call waits, or the moment until which it waits.
  enum Limit: Hashable {
    /// A duration in nanoseconds.
    case relative(Int64)
    /// A moment in nanoseconds of CLOCK_MONOTONIC or of CLOCK_REALTIME.
    case monotonic(Int64), realtime(Int64)
  }

  /// Returns the timeout that ends the call by itself; nil if there is none.
  ///
  /// - Parameters:
  ///   - read: reads two words of the process's memory.
  ///   - socketLimit: returns the timeout of a socket of the process in nanoseconds.
  func limit(
    read: (UInt64) -> (Int64, Int64)?,
    socketLimit: (_ descriptor: Int32, _ isSending: Bool) -> Int64? = { _, _ in nil }
  ) -> Limit? {
    var index: Int32 = 0
    let kind = clinux_wait_of(number, arguments, &index)
    guard kind != CLINUX_WAIT_NONE, arguments.indices.contains(Int(index)) else { return nil }
    let value = arguments[Int(index)]
    switch kind {
    case CLINUX_WAIT_MILLISECONDS:
      let milliseconds = Int32(truncatingIfNeeded: value)
      return milliseconds < 0 ? nil : .relative(Int64(milliseconds) * 1_000_000)
    case CLINUX_WAIT_RECEIVING, CLINUX_WAIT_SENDING:
      let descriptor = Int32(truncatingIfNeeded: arguments[0])
      return socketLimit(descriptor, kind == CLINUX_WAIT_SENDING).map { .relative($0) }
    default: break
    }
    guard value != 0, let (seconds, fraction) = read(value), seconds >= 0, fraction >= 0,
      seconds < 1 << 32, fraction < 1_000_000_000
    else { return nil }
    let time = seconds * 1_000_000_000
    switch kind {
    case CLINUX_WAIT_TIMESPEC: return .relative(time + fraction)
    case CLINUX_WAIT_TIMEVAL: return .relative(time + fraction * 1000)
    case CLINUX_WAIT_TIMESPEC_ABSOLUTE: return .monotonic(time + fraction)
    case CLINUX_WAIT_TIMESPEC_REALTIME: return .realtime(time + fraction)
    default: return nil
    }
  }

  var isRestart: Bool { clinux_is_restart(number) == 1 }
  var again: clinux_again { clinux_again_of(number) }
}
