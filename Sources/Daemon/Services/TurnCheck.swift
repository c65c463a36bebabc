import CLinux
import Glibc
import Linux

/// Detects what blocks the event loop. A turn is the handling of one descriptor, message, timer or
/// directive, or the sampling of one worker. Time for which the thread computed doesn't count, nor
/// does time for which it was ready to run and waited for a processor. If a turn is blocked for
/// longer than the limit, the process aborts with a message that names the handlers and their
/// durations. Thus chaos and soak tests fail if a system call on the loop's thread can be delayed.
/// A turn in which pages of the daemon itself were read from a disk is only reported.
///
/// A debug build always checks, with a limit of 2 s: in tests, dozens of daemons share the
/// processors and one disk. `DORMOUSE_LOOP_CHECK` overrides that, also in a release build: `off`, a
/// limit (`100ms`, `2s`), or `report` or `report:LIMIT`, which writes the message and continues.
struct TurnCheck {
  struct Settings: Hashable {
    /// In nanoseconds.
    var limit: Int64
    var aborts = true
  }

  /// The source line where a handler was registered, which names it.
  struct Label: CustomStringConvertible {
    var file: StaticString
    var line: UInt

    var description: String {
      "\(file)".split(separator: "/").last.map { "\($0):\(line)" } ?? "\(file):\(line)"
    }
  }

  static let variable = "DORMOUSE_LOOP_CHECK"
  /// The limit of a debug build, in nanoseconds.
  static let usualLimit: Int64 = 2_000_000_000
  /// A step may compute for this many times the limit before it is reported.
  private static let computing: Int64 = 5

  private let settings: Settings
  /// `/proc/thread-self/schedstat`: nanoseconds on a processor, then nanoseconds of waiting for
  /// one.
  private let account: Descriptor?
  private var began: Moment?
  /// Steps of this turn that took at least a tenth of the limit, in the order in which they ended.
  private var steps: [(what: String, nanoseconds: Int64)] = []
  /// How many steps have begun and not ended. A step may contain turns that end within it.
  private var depth = 0
  /// The first result of `end` within a step. It is kept until the outermost step has ended, whose
  /// name completes the message.
  private var firstFinding: (text: String, isDefect: Bool)?

  private struct Moment {
    var at: Int64
    var computed: Int64
    var waited: Int64
    /// The number of page faults that read from a disk.
    var faults: Int64
    /// The value of `clinux_stop_count`.
    var stops: UInt32
  }

  /// Call this on the loop's thread.
  ///
  /// - Parameter settings: nil: nothing is checked.
  init?(_ settings: Settings?) {
    guard let settings else { return nil }
    self.settings = settings
    // Without this file (CONFIG_SCHED_INFO), the check can't distinguish waiting for a processor
    // from being blocked, and would abort on a busy machine.
    guard let account = try? Descriptor.open("/proc/thread-self/schedstat") else { return nil }
    self.account = account
  }

  /// Begins a turn. Called after epoll_wait.
  mutating func begin() {
    steps.removeAll(keepingCapacity: true)
    began = now()
  }

  /// Ends the turn, before the next one begins. Returns the message that was written, for tests.
  @discardableResult
  mutating func end() -> String? {
    guard let start = began else { return nil }
    began = nil
    guard clinux_monotonic() - start.at > settings.limit else { return nil }
    let end = now()
    // The process has stopped itself meanwhile (Ctrl-Z in a wrapper's terminal).
    guard start.stops == end.stops, start.stops % 2 == 0 else { return nil }
    let computed = end.computed - start.computed
    let blocked = end.at - start.at - (end.waited - start.waited) - computed
    guard blocked > settings.limit || computed > Self.computing * settings.limit else { return nil }
    let faults = end.faults - start.faults
    // Computing is only reported, since debug code is slow and the caches of a busy machine are
    // cold. Waiting for the daemon's own pages is only reported, too, since no system call caused
    // it: a machine short of memory takes these pages away, and a debug build is too large to be
    // locked in memory.
    let isDefect = blocked > settings.limit && faults == 0
    let texts = steps.map { "\($0.what) \(Self.milliseconds($0.nanoseconds))" }
    let list = texts.isEmpty ? "no single step" : texts.joined(separator: ", ")
    let pages = faults > 0 ? "; \(faults) of its pages were read from a disk" : ""
    let lead = isDefect ? Self.defect : "dormouse: a turn of the event loop was slow, blocked for "
    let text =
      "\(lead)\(Self.milliseconds(blocked)) in one turn "
      + "(limit \(Self.milliseconds(settings.limit)); "
      + "it computed for \(Self.milliseconds(computed))\(pages)): \(list)"
    Self.write(text)
    if depth > 0 {
      if firstFinding?.isDefect != true { firstFinding = (text, isDefect) }
    } else if settings.aborts, isDefect {
      abort()
    }
    return text
  }

  /// Begins a step of the turn, which the message will name.
  mutating func beginStep() { depth += 1 }

  /// Ends the step. Returns the message that was written, for tests.
  @discardableResult
  mutating func endStep(from start: Int64, _ what: () -> String) -> String? {
    depth -= 1
    let nanoseconds = clinux_monotonic() - start
    if nanoseconds >= settings.limit / 10 { steps.append((what(), nanoseconds)) }
    guard depth == 0, let (text, isDefect) = firstFinding else { return nil }
    firstFinding = nil
    let message = "\(text); in \(what())"
    Self.write(message)
    if settings.aborts, isDefect { abort() }
    return message
  }

  /// The beginning of the message if a call on the loop's thread can be delayed. Tests search for
  /// it.
  static let defect = "dormouse: the event loop was blocked for "

  private static func milliseconds(_ nanoseconds: Int64) -> String {
    "\((nanoseconds + 500_000) / 1_000_000) ms"
  }

  /// Writes to standard error, unless that would wait.
  private static func write(_ text: String) {
    var request = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    guard poll(&request, 1, 0) == 1 else { return }
    let bytes = Array((text + "\n").utf8)
    _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
  }

  private func now() -> Moment {
    var moment = Moment(
      at: clinux_monotonic(), computed: 0, waited: 0, faults: clinux_major_faults(),
      stops: clinux_stop_count())
    guard let account else { return moment }
    withUnsafeTemporaryAllocation(byteCount: 80, alignment: 8) { buffer in
      let count = pread(account.raw, buffer.baseAddress, buffer.count, 0)
      var numbers: [Int64] = [0]
      for byte in buffer.prefix(max(count, 0)) {
        if (0x30...0x39).contains(byte) {
          numbers[numbers.count - 1] = numbers[numbers.count - 1] &* 10 &+ Int64(byte - 0x30)
        } else {
          numbers.append(0)
        }
      }
      guard numbers.count >= 2 else { return }
      moment.computed = numbers[0]
      moment.waited = numbers[1]
    }
    return moment
  }
}

extension TurnCheck.Settings {
  /// The settings that follow from the environment and the kind of build.
  static func current(_ text: String? = getenv(TurnCheck.variable).map { String(cString: $0) })
    -> TurnCheck.Settings?
  {
    #if DEBUG
      let usual: TurnCheck.Settings? = TurnCheck.Settings(limit: TurnCheck.usualLimit)
    #else
      let usual: TurnCheck.Settings? = nil
    #endif
    guard var text, !text.isEmpty else { return usual }
    if text == "off" { return nil }
    var settings = TurnCheck.Settings(limit: TurnCheck.usualLimit)
    if text.hasPrefix("report") {
      settings.aborts = false
      text.removeFirst("report".count)
      if text.isEmpty { return settings }
      text = String(text.drop { $0 == ":" })
    }
    let (digits, unit) = (text.prefix { $0.isNumber }, text.drop { $0.isNumber })
    guard let number = Int64(digits), number > 0, number < 1_000_000 else { return usual }
    switch unit {
    case "ms": settings.limit = number * 1_000_000
    case "s": settings.limit = number * 1_000_000_000
    default: return usual
    }
    return settings
  }
}
