import CLinux
import Glibc
import Linux

/// Finds what blocks the event loop. A turn is the handling of one descriptor, message, timer or directive,
/// or the look at one worker; time that the thread computed, or was ready and waited for a processor, doesn't
/// count. A turn that is blocked for longer than the limit aborts the process with a message that names the
/// handlers and their durations, so that chaos and soak fail when a system call on the loop's thread can be
/// delayed. A turn in which pages of the daemon itself had to be read from a disk is only reported.
///
/// A debug build always checks, with 2 s: in tests dozens of daemons share the processors and one disk.
/// `DORMOUSE_LOOP_CHECK` overrides that, in a release build too: `off`, a limit (`100ms`, `2s`), or
/// `report`, or `report:LIMIT`, which writes the message and continues.
struct TurnCheck {
  struct Settings: Hashable {
    /// Nanoseconds.
    var limit: Int64
    var aborts = true
  }

  /// Where a handler was registered, or what it performs.
  struct Label: Hashable, CustomStringConvertible {
    var file: StaticString
    var line: UInt

    static func == (left: Label, right: Label) -> Bool {
      left.line == right.line && left.file.utf8Start == right.file.utf8Start
    }
    func hash(into hasher: inout Hasher) { hasher.combine(line) }

    var description: String {
      "\(file)".split(separator: "/").last.map { "\($0):\(line)" } ?? "\(file):\(line)"
    }
  }

  static let variable = "DORMOUSE_LOOP_CHECK"
  /// Nanoseconds; of a debug build.
  static let usualLimit: Int64 = 2_000_000_000
  /// A step may compute for this many times the limit before it is reported.
  private static let computing: Int64 = 5

  private let settings: Settings
  /// `/proc/thread-self/schedstat`: nanoseconds on a processor, nanoseconds of waiting for one.
  private let account: Descriptor?
  private var began: Moment?
  /// Steps of this turn that took at least a tenth of the limit, in the order in which they ended.
  private var steps: [(what: String, nanoseconds: Int64)] = []
  /// How many steps have begun and not ended: one may end turns within itself.
  private var depth = 0
  /// What `end` has found first within steps, until the outermost of them can be named.
  private var found: (text: String, isDefect: Bool)?

  private struct Moment {
    var at: Int64
    var computed: Int64
    var waited: Int64
    /// Page faults that had to read from a disk.
    var faults: Int64
    /// As in `clinux_stop_count`.
    var stops: UInt32
  }

  /// nil: nothing is checked. On the loop's thread.
  init?(_ settings: Settings?) {
    guard let settings else { return nil }
    self.settings = settings
    // Without it (CONFIG_SCHED_INFO) the check can't distinguish waiting for a processor from being blocked,
    // and would abort on a busy machine.
    guard let account = try? Descriptor.open("/proc/thread-self/schedstat") else { return nil }
    self.account = account
  }

  /// After epoll_wait.
  mutating func begin() {
    steps.removeAll(keepingCapacity: true)
    began = now()
  }

  /// Before the next one. Returns the message, for tests.
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
    // Computing is only reported: debug code is slow, and a busy machine's caches are cold. So is waiting
    // for the daemon's own pages, which a machine short of memory takes away (a debug build is too large to
    // be locked in memory): no system call made it wait.
    let isDefect = blocked > settings.limit && faults == 0
    let text =
      (isDefect ? Self.defect : "dormouse: a turn of the event loop was slow, blocked for ")
      + Self.details(
        blocked: blocked, computed: computed, faults: faults, limit: settings.limit, steps)
    Self.write(text)
    if depth > 0 {
      if found?.isDefect != true { found = (text, isDefect) }
    } else if settings.aborts, isDefect {
      abort()
    }
    return text
  }

  /// Before a part of the turn that is named in the message.
  mutating func beginStep() { depth += 1 }

  /// After that part. Returns the message that was written, for tests.
  @discardableResult
  mutating func endStep(from start: Int64, _ what: () -> String) -> String? {
    depth -= 1
    let nanoseconds = clinux_monotonic() - start
    if nanoseconds >= settings.limit / 10 { steps.append((what(), nanoseconds)) }
    guard depth == 0, let (text, isDefect) = found else { return nil }
    found = nil
    let message = "\(text); in \(what())"
    Self.write(message)
    if settings.aborts, isDefect { abort() }
    return message
  }

  /// How the message begins where a call on the loop's thread can be delayed; tests look for it.
  static let defect = "dormouse: the event loop was blocked for "

  private static func details(
    blocked: Int64, computed: Int64, faults: Int64, limit: Int64,
    _ steps: [(what: String, nanoseconds: Int64)]
  ) -> String {
    let parts = steps.map { "\($0.what) \(milliseconds($0.nanoseconds))" }
    return "\(milliseconds(blocked)) in one turn "
      + "(limit \(milliseconds(limit)); it computed for \(milliseconds(computed))"
      + (faults > 0 ? "; \(faults) of its pages were read from a disk" : "") + "): "
      + (parts.isEmpty ? "no single step" : parts.joined(separator: ", "))
  }

  private static func milliseconds(_ nanoseconds: Int64) -> String {
    "\((nanoseconds + 500_000) / 1_000_000) ms"
  }

  /// To standard error, unless that is full.
  private static func write(_ text: String) {
    var place = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    guard poll(&place, 1, 0) == 1 else { return }
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
  /// The settings of the environment and of the kind of build.
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
