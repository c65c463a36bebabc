import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

// `wake_at:`. A sleeping worker is woken at the instants that a line of cron names, in local time.
//
// The next instant of each worker is written down, so that one that passed while there was no daemon,
// or that the clock jumped over, is made good for: once, however many of them there were.

/// The next instants, by worker, in seconds since 1970; a file of `seconds name` lines.
struct WakePlan {
  private let path: String
  private(set) var due: [String: Int64] = [:]

  init(path: String) {
    self.path = path
    for line in ((try? readText(path)) ?? "").split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 1)
      guard words.count == 2, let seconds = Int64(words[0]) else { continue }
      due[String(words[1])] = seconds
    }
  }

  /// Calls back on the loop when that is on disk, or can't be (with the reason). False: nothing has changed.
  mutating func set(
    _ due: [String: Int64], _ disk: DiskQueue, _ mailbox: Mailbox<Daemon>,
    then: @escaping @Sendable (Daemon, String?) -> Void
  ) -> Bool {
    guard due != self.due else { return false }
    self.due = due
    let text = due.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)\n" }.joined()
    disk.submit { [path] in
      let failure = Daemon.failure { try replaceFile(path, with: text) }
      mailbox.post { then($0, failure) }
    }
    return true
  }
}

extension Daemon {
  /// A clock that is set is noticed within so long.
  private static let longestNap = Duration.seconds(60)
  private static let diskPatience = Duration.seconds(5)

  /// Wakes whose time has come, and sets the timer for the next. Also when the configuration was read.
  func followSchedules() {
    if let timer = scheduleTimer { loop.cancel(timer) }
    scheduleTimer = nil
    let now = Int64(time(nil))
    var plan: [String: Int64] = [:]
    for runtime in workers.values where !runtime.configuration.wakeAt.isEmpty {
      let name = runtime.id.name
      let next = nextWake(runtime, after: now)
      // The clock was set back, or the schedule is another: what was planned doesn't hold.
      let planned = wakePlan.due[name].flatMap { due in
        due <= now || next.map { due <= $0 } == true ? due : nil
      }
      if let planned, planned > now { plan[name] = planned } else { plan[name] = next }
      // Before it is woken: a daemon that dies between the two wakes too seldom rather than twice.
      if let planned, planned <= now { overdue.append(runtime.id) }
    }
    let isWritten = wakePlan.set(plan, disk, mailbox) { daemon, failure in
      if let failure {
        daemon.log(.warning, "when workers are to be woken can't be kept for later: \(failure)")
      }
      daemon.wakeOverdue()
    }
    if !isWritten {
      wakeOverdue()
    } else if !overdue.isEmpty {
      // A disk that doesn't answer is no reason to sleep on.
      loop.after(Self.diskPatience) { [unowned self] in wakeOverdue() }
    }
    guard let next = plan.values.min() else { return }
    var precise = timespec()
    clock_gettime(CLOCK_REALTIME, &precise)
    let nap =
      Duration.seconds(next - Int64(precise.tv_sec)) - .nanoseconds(Int64(precise.tv_nsec))
      + .milliseconds(1)
    scheduleTimer = loop.after(max(.zero, min(nap, Self.longestNap))) { [unowned self] in
      followSchedules()
    }
  }

  private func wakeOverdue() {
    let due = overdue
    overdue = []
    for id in due { wakeOnSchedule(id) }
  }

  private func wakeOnSchedule(_ id: WorkerID) {
    guard let runtime = workers[id] else { return }
    if adopting[id] != nil {
      adopting[id]?.append { [unowned self] in wakeOnSchedule(id) }
      return
    }
    guard engine.state(of: id)?.sleeps == true else { return }
    let lines = runtime.configuration.wakeAt.map(\.text).joined(separator: ", ")
    feed(.wakeNeeded(id, "its schedule (\(lines))"))
  }

  func nextWake(_ runtime: WorkerRuntime, after now: Int64) -> Int64? {
    runtime.configuration.wakeAt.compactMap { LocalTime.next($0, after: now) }.min()
  }
}

/// Schedules in the machine's time zone.
enum LocalTime {
  /// Seconds that local time is ahead of UTC then, by the rules of TZ or /etc/localtime.
  static func offset(at seconds: Int64) -> Int {
    var clock = time_t(seconds)
    var local = tm()
    tzset()
    localtime_r(&clock, &local)
    return Int(local.tm_gmtoff)
  }

  /// - Parameter offset: of local time from UTC, in seconds.
  ///
  /// A time of day that the clock skips comes as much later as it skips; one that comes twice, when the
  /// clock is put back, counts the first time.
  static func next(
    _ schedule: CalendarSchedule, after now: Int64, offset: (Int64) -> Int = Self.offset
  ) -> Int64? {
    var found = candidate(schedule, after: now, offset)
    while let time = found, isRepeat(time, offset) {
      found = candidate(schedule, after: time, offset)
    }
    return found
  }

  private static func candidate(
    _ schedule: CalendarSchedule, after now: Int64, _ offset: (Int64) -> Int
  ) -> Int64? {
    let before = offset(now)
    guard let first = schedule.next(after: now, utcOffset: before) else { return nil }
    let after = offset(first)
    guard after != before else { return first }
    // The clock is put forward or back between now and then.
    guard let second = schedule.next(after: now, utcOffset: after), offset(second) == after else {
      return first
    }
    return second
  }

  /// What the clock shows then, it has shown shortly before, too: it was put back since.
  private static func isRepeat(_ time: Int64, _ offset: (Int64) -> Int) -> Bool {
    let earlier = offset(time - 7200)
    let difference = Int64(earlier - offset(time))
    return difference > 0 && offset(time - difference) == earlier
  }
}
