import CLinux
import Glibc

/// When a worker would go on by itself: a time-out that one of its threads waits for, or a timer that
/// it has set.
///
/// What the kernel tells: timerfds, by `/proc/PID/fdinfo` (proc_pid_fdinfo(5)); and the time-outs of
/// the calls that threads wait in (epoll, poll, select, sleeps, futexes), by `/proc/PID/task/TID/syscall`
/// (proc_pid_syscall(5)), with what their arguments point to. Not: alarm(2), setitimer(2) and
/// timer_create(2); they end in a signal, which stays pending.
public struct DueTime: Hashable, Sendable {
  public enum Source: Hashable, Sendable { case timer, timeout }

  public var source: Source
  /// From now. Of a relative time-out the whole of it, because nobody knows how much is over: so at
  /// most that late.
  public var remaining: Duration
  /// The whole that was asked for, or the interval of a timer that repeats; nil where only the end is
  /// known.
  public var whole: Duration?

  public init(source: Source, remaining: Duration, whole: Duration?) {
    self.source = source
    self.remaining = remaining
    self.whole = whole
  }

  /// Of processes that rest; takes the right to trace them. What can't be read is left out.
  public static func all(of tree: ProcessTree) -> [DueTime] {
    tree.pids.flatMap { timers(of: $0) + timeouts(of: $0) }
  }
}

// MARK: - timerfds

extension DueTime {
  private static func timers(of pid: Int32) -> [DueTime] {
    let directory = "/proc/\(pid)/fd"
    return ((try? listNumbers(directory)) ?? []).compactMap { number -> DueTime? in
      var target = [UInt8](repeating: 0, count: 64)
      let length = readlink("\(directory)/\(number)", &target, target.count)
      guard length > 0, target[..<length].elementsEqual("anon_inode:[timerfd]".utf8),
        let bytes = try? readFile("/proc/\(pid)/fdinfo/\(number)")
      else { return nil }
      return DueTime(fdinfo: bytes)
    }
  }

  /// nil: not armed.
  init?(fdinfo bytes: [UInt8]) {
    var value: Duration?
    var interval: Duration?
    forEachField(bytes) { key, text in
      switch key {
      case "it_value": value = Self.pair(text)
      case "it_interval": interval = Self.pair(text)
      default: break
      }
    }
    guard let value, value > .zero else { return nil }
    let repeats = interval.map { $0 > .zero } ?? false
    self.init(source: .timer, remaining: value, whole: repeats ? interval : nil)
  }

  /// `(seconds, nanoseconds)`
  private static func pair(_ text: ArraySlice<UInt8>) -> Duration? {
    let digits = text.split { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard digits.count == 2, let seconds: Int64 = digits[0].number(),
      let nanoseconds: Int64 = digits[1].number()
    else { return nil }
    return .seconds(seconds) + .nanoseconds(nanoseconds)
  }
}

// MARK: - time-outs of system calls

extension DueTime {
  private static func timeouts(of pid: Int32) -> [DueTime] {
    let memory = try? Descriptor.open("/proc/\(pid)/mem")
    return ((try? threads(of: pid)) ?? []).compactMap { thread -> DueTime? in
      guard let text = try? readText("/proc/\(pid)/task/\(thread)/syscall"),
        let call = WaitingCall(text)
      else { return nil }
      return call.dueTime { address in
        guard let memory else { return nil }
        var words: [Int64] = [0, 0]
        let count = pread(memory.raw, &words, 16, off_t(truncatingIfNeeded: address))
        return count == 16 ? (words[0], words[1]) : nil
      }
    }
  }
}

/// One line of `/proc/PID/task/TID/syscall`.
struct WaitingCall: Hashable {
  var number: Int64
  /// Six.
  var arguments: [UInt64]

  init(number: Int64, arguments: [UInt64]) {
    self.number = number
    self.arguments = arguments
  }

  /// nil: it is in no call.
  init?(_ line: String) {
    let words = line.split { $0 == " " || $0 == "\n" }
    guard words.count == 9, let number = Int64(words[0]), number >= 0 else { return nil }
    let arguments = words[1...6].compactMap { UInt64($0.dropFirst(2), radix: 16) }
    guard arguments.count == 6 else { return nil }
    self.number = number
    self.arguments = arguments
  }

  /// `read`: two words of the process's memory.
  func dueTime(
    monotonic: Duration = Clocks.now(CLOCK_MONOTONIC),
    realtime: Duration = Clocks.now(CLOCK_REALTIME), read: (UInt64) -> (Int64, Int64)?
  ) -> DueTime? {
    var place: Int32 = 0
    let kind = clinux_wait_of(number, arguments, &place)
    guard kind != CLINUX_WAIT_NONE, arguments.indices.contains(Int(place)) else { return nil }
    let value = arguments[Int(place)]
    if kind == CLINUX_WAIT_MILLISECONDS {
      let milliseconds = Int32(truncatingIfNeeded: value)
      return milliseconds < 0 ? nil : Self.relative(.milliseconds(Int64(milliseconds)))
    }
    guard value != 0, let (seconds, fraction) = read(value), seconds >= 0, fraction >= 0,
      seconds < 1 << 40, fraction < 1_000_000_000
    else { return nil }
    let time = Duration.seconds(seconds) + .nanoseconds(fraction)
    switch kind {
    case CLINUX_WAIT_TIMESPEC: return Self.relative(time)
    case CLINUX_WAIT_TIMEVAL:
      return Self.relative(.seconds(seconds) + .microseconds(fraction))
    case CLINUX_WAIT_TIMESPEC_ABSOLUTE:
      return DueTime(source: .timeout, remaining: max(.zero, time - monotonic), whole: nil)
    case CLINUX_WAIT_TIMESPEC_REALTIME:
      return DueTime(source: .timeout, remaining: max(.zero, time - realtime), whole: nil)
    default: return nil
    }
  }

  private static func relative(_ time: Duration) -> DueTime {
    DueTime(source: .timeout, remaining: time, whole: time)
  }
}

extension Clocks {
  static func now(_ clock: clockid_t) -> Duration {
    var time = timespec()
    clock_gettime(clock, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}
