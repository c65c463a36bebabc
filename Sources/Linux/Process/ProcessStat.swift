import CLinux
import Glibc

/// The state of a process or thread from `/proc/PID/stat` (proc_pid_stat(5)).
public struct ProcessStat: Hashable, Sendable {
  public var pid: Int32
  /// The name, at most 15 bytes. The process chooses it itself, and it may contain blanks, newlines
  /// and `)`.
  public var name: String
  public var state: State
  /// True if the thread is exiting (PF_EXITING). The last thread of a large process frees memory
  /// for seconds then, and its state is `running`.
  public var isExiting: Bool
  public var parent: Int32
  public var processGroup: Int32
  public var session: Int32
  /// The number of the controlling terminal; 0 if there is none.
  public var terminal: Int32
  /// The process group that gets the terminal's input.
  public var terminalGroup: Int32
  /// The processor time utime + stime in clock ticks (`ClockTicks.perSecond`).
  public var cpuTicks: UInt64
  public var threadCount: Int
  /// The start time in clock ticks since boot. Together with the pid it identifies a process until
  /// the next boot.
  public var startTime: UInt64
  /// The approximate number of pages in RAM, as the kernel counts them; 0 for kernel threads.
  public var residentPages: UInt64
  /// The processor on which it last ran.
  var processor: Int32?
  /// The addresses of the command line. This range and `environment` are empty if this process may
  /// not trace the process.
  public var arguments: Range<UInt64>
  public var environment: Range<UInt64>

  public enum State: Hashable, Sendable {
    case running, sleeping, uninterruptible, stopped, traced, zombie, dead, idle
    case other(UInt8)

    init(letter: UInt8) {
      switch letter {
      case UInt8(ascii: "R"): self = .running
      case UInt8(ascii: "S"): self = .sleeping
      case UInt8(ascii: "D"): self = .uninterruptible
      case UInt8(ascii: "T"): self = .stopped
      case UInt8(ascii: "t"): self = .traced
      case UInt8(ascii: "Z"): self = .zombie
      case UInt8(ascii: "X"), UInt8(ascii: "x"): self = .dead
      case UInt8(ascii: "I"): self = .idle
      default: self = .other(letter)
      }
    }

    /// True if the thread has ended and won't run again.
    public var isEnded: Bool { self == .zombie || self == .dead }
    /// True if the thread doesn't run until a signal or a tracer continues it, or if it has ended.
    public var isAtRest: Bool { self == .stopped || self == .traced || isEnded }
  }

  /// True if the process as a whole has ended. If only its first thread has ended, that shows as a
  /// zombie too.
  public var isEnded: Bool { state.isEnded && threadCount <= 1 }

  public var identity: ProcessIdentity { ProcessIdentity(pid: pid, startTime: startTime) }

  /// Reads the stat of a process.
  ///
  /// - Throws: ENOENT or ESRCH if it has ended (`meansVanished`); EACCES if /proc hides it.
  public static func read(_ pid: Int32) throws(SystemCallError) -> ProcessStat {
    do throws(SystemCallError) { return try read(path: "/proc/\(pid)/stat") } catch {
      throw error.unlessHidden(pid)
    }
  }

  public static func read(thread: Int32, of pid: Int32) throws(SystemCallError) -> ProcessStat {
    try read(path: "/proc/\(pid)/task/\(thread)/stat")
  }

  private static func read(path: String) throws(SystemCallError) -> ProcessStat {
    let bytes = try readRecord(path)
    guard let stat = ProcessStat(parsing: bytes) else { throw malformed(path) }
    return stat
  }

  /// The result is nil if the bytes aren't the content of a stat file.
  public init?(parsing bytes: [UInt8]) {
    // The process chooses its name. Only the first `(` and the last `)` are the kernel's.
    guard let open = bytes.firstIndex(of: UInt8(ascii: "(")),
      let close = bytes.lastIndex(of: UInt8(ascii: ")")), open < close,
      let pid: Int32 = bytes[..<open].words().first?.number()
    else { return nil }
    // The indices at which the fields begin. There is no slice for each, because a daemon reads
    // this file of every process in each sample.
    var starts: [Int] = []
    starts.reserveCapacity(53)
    var isInField = false
    for index in (close + 1)..<bytes.count {
      let isBlank = bytes[index].isBlank
      if !isBlank, !isInField { starts.append(index) }
      isInField = !isBlank
    }
    // Fields are numbered as in the manual page. The third field is the first one after the name.
    func field<Number: FixedWidthInteger>(_ number: Int) -> Number? {
      guard starts.count > number - 3 else { return nil }
      let text = bytes[starts[number - 3]...]
      return text[..<(text.firstIndex(where: \.isBlank) ?? text.endIndex)].number()
    }
    guard let first = starts.first, let parent: Int32 = field(4),
      let startTime: UInt64 = field(22), let user: UInt64 = field(14),
      let system: UInt64 = field(15), let threads: Int = field(20)
    else { return nil }
    self.pid = pid
    name = String(decoding: bytes[(open + 1)..<close], as: UTF8.self)
    state = State(letter: bytes[first])
    isExiting = (field(9) ?? UInt64(0)) & 0x4 != 0
    self.parent = parent
    // A process without a terminal session, or outside this pid namespace, shows 0 or −1.
    processGroup = field(5) ?? 0
    session = field(6) ?? 0
    terminal = field(7) ?? 0
    terminalGroup = field(8) ?? -1
    cpuTicks = user &+ system
    threadCount = threads
    self.startTime = startTime
    residentPages = field(24) ?? 0
    processor = field(39)
    arguments = Self.range(field(48), field(49))
    environment = Self.range(field(50), field(51))
  }

  private static func range(_ start: UInt64?, _ end: UInt64?) -> Range<UInt64> {
    guard let start, let end, start <= end else { return 0..<0 }
    return start..<end
  }
}

extension ProcessStat {
  /// The start time in nanoseconds of CLOCK_BOOTTIME, rounded down to a clock tick.
  public var started: Int64 {
    Int64(clamping: startTime / ClockTicks.perSecond) * 1_000_000_000
      + Int64(startTime % ClockTicks.perSecond * 1_000_000_000 / ClockTicks.perSecond)
  }
}

/// The unit of processor times and start times in /proc.
public enum ClockTicks {
  public static let perSecond = UInt64(max(1, sysconf(Int32(_SC_CLK_TCK))))
}

/// The identity of a process. The kernel reuses pids, but not together with a start time.
public struct ProcessIdentity: Hashable, Sendable {
  public let pid: Int32
  /// The start time in clock ticks since boot.
  public let startTime: UInt64

  public init(pid: Int32, startTime: UInt64) {
    self.pid = pid
    self.startTime = startTime
  }

  /// Reads the identity of the process that has the pid now.
  public static func current(of pid: Int32) throws(SystemCallError) -> ProcessIdentity {
    try ProcessStat.read(pid).identity
  }

  /// True if it has ended, or if each of its threads is about to end or has a pending SIGKILL.
  /// False if that isn't known. It reads one thread, or all if the first has ended before the
  /// others.
  public var isEnding: Bool {
    do throws(SystemCallError) {
      let stat = try ProcessStat.read(pid)
      if stat.startTime != startTime { return true }
      guard stat.state.isEnded, stat.threadCount > 1 else { return isThreadEnding(pid) }
      return try threads(of: pid).allSatisfy(isThreadEnding)
    } catch { return error.meansVanished }
  }

  private func isThreadEnding(_ thread: Int32) -> Bool {
    do throws(SystemCallError) {
      if try ProcessStat.read(thread: thread, of: pid).isExiting { return true }
      let status = try ProcessStatus.read(thread)
      let pending = status.pendingForThread | status.pendingForProcess
      return pending & (1 << UInt64(SIGKILL - 1)) != 0
    } catch { return error.meansVanished }
  }

  /// Sends a signal to this process, and never to another one that has got its pid.
  ///
  /// - Returns: false if the process has ended.
  @discardableResult
  public func signal(_ number: Int32) throws(SystemCallError) -> Bool {
    do throws(SystemCallError) {
      let pidfd = try openPidfd()
      try shim("pidfd_send_signal", on: "pid \(pid)") {
        clinux_pidfd_send_signal(pidfd.raw, number)
      }
      return true
    } catch {
      if error.meansVanished { return false }
      throw error
    }
  }

  /// Opens a descriptor that always refers to this process.
  ///
  /// - Throws: ESRCH if it has ended, or if another process has its pid.
  public func openPidfd() throws(SystemCallError) -> Descriptor {
    let pidfd: Descriptor
    do throws(SystemCallError) { pidfd = try Descriptor.pidfd(of: pid) } catch {
      // Kernels before 6.15 return EINVAL for a pid that is only the number of a session or group.
      throw error.code == EINVAL
        ? SystemCallError(error.call, on: error.subject, code: ESRCH) : error
    }
    // The start time can be trusted only now, when the descriptor pins the process.
    try checkLife("pidfd_open", on: "pid \(pid)")
    return pidfd
  }
}

extension UInt8 {
  /// True for a blank or the end of a line.
  fileprivate var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\n") }
}
