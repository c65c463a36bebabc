import Glibc
import Lifecycle
import Linux
import Policy

/// Wakes sleeping workers at the times of `wake_at:`, which are lines as in cron's tables, in local
/// time.
///
/// The next time of each worker is saved. If it passes while no daemon runs, or the clock jumps
/// over it, the worker is woken once afterwards, however many times were missed. It belongs to the
/// event loop's thread.
final class ScheduleMonitor {
  private let path: String
  private let timers: any Timers
  private let files: any StateFileWriter
  /// The wall-clock time, in nanoseconds since 1970.
  private let wallClock: () -> Int64
  /// Local time's offset from UTC at a time, in seconds.
  private let offset: (Int64) -> Int
  private let workers: WorkerRegistry
  private let wake: (WorkerID) -> Void
  private let warn: (String) -> Void

  /// By worker, the next time in seconds since 1970, as saved.
  private var planned: [WorkerID: Int64]
  private var timer: EventLoop.Token?
  /// The workers to be woken as soon as the plan is saved.
  private var overdue: [WorkerID] = []

  /// The maximum time between two checks of the wall clock, so that a change of the clock is
  /// noticed.
  private static let maxPause = Duration.seconds(60)
  /// How long a wake waits for the disk. After that the worker is woken without a saved plan.
  private static let diskTimeout = Duration.seconds(5)

  /// - Parameters:
  ///   - path: the file with the next times, in lines of the form `seconds name`.
  ///   - wake: called for a worker whose time has come, whether it sleeps or not.
  init(
    path: String, timers: any Timers, files: any StateFileWriter, workers: WorkerRegistry,
    wallClock: @escaping () -> Int64 = { Clocks.realtime },
    offset: @escaping (Int64) -> Int = LocalTime.offset, wake: @escaping (WorkerID) -> Void,
    warn: @escaping (String) -> Void
  ) {
    self.path = path
    self.timers = timers
    self.files = files
    self.wallClock = wallClock
    self.offset = offset
    self.workers = workers
    self.wake = wake
    self.warn = warn
    planned = Self.read(path)
  }

  private static func read(_ path: String) -> [WorkerID: Int64] {
    // If the file is missing or a line is malformed, a missed wake isn't repeated.
    let lines = ((try? readText(path)) ?? "").split(separator: "\n")
    return lines.reduce(into: [:]) { result, line in
      let fields = line.split(separator: " ", maxSplits: 1)
      guard fields.count == 2, let seconds = Int64(fields[0]) else { return }
      result[WorkerID(String(fields[1]))] = seconds
    }
  }

  /// Wakes the workers whose time has come, and sets the timer for the next. Call it also when the
  /// configuration was read.
  func follow() {
    if let timer { timers.cancel(timer) }
    timer = nil
    let now = wallClock()
    let seconds = now / 1_000_000_000
    var plan: [WorkerID: Int64] = [:]
    for id in workers.keys.sorted() {
      guard let lines = workers[id]?.configuration.wakeAt, !lines.isEmpty else { continue }
      let next = next(lines, after: seconds)
      // If the clock was set back or the schedule has changed, the planned time isn't valid any
      // more.
      let due = planned[id].flatMap { due in
        due <= seconds || next.map { due <= $0 } == true ? due : nil
      }
      if let due, due > seconds { plan[id] = due } else { plan[id] = next }
      // The plan is saved before the wake: a daemon that dies between the two wakes the worker once
      // too seldom, and not twice.
      if let due, due <= seconds { overdue.append(id) }
    }
    write(plan)
    guard let next = plan.values.min() else { return }
    let pause = Duration.nanoseconds(next * 1_000_000_000 - now) + .milliseconds(1)
    timer = timers.at(timers.now + max(.zero, min(pause, Self.maxPause))) { [unowned self] in
      follow()
    }
  }

  /// The next time of a worker with these schedules, in seconds since 1970.
  func next(_ lines: [CalendarSchedule], after seconds: Int64) -> Int64? {
    lines.compactMap { LocalTime.next($0, after: seconds, offset: offset) }.min()
  }

  private func write(_ plan: [WorkerID: Int64]) {
    guard plan != planned else { return wakeOverdue() }
    planned = plan
    let lines = plan.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)\n" }
    files.replace(path, with: lines.joined()) { [weak self] failure in
      if let failure {
        self?.warn("can't write the schedule of wakes: \(failure)")
      }
      self?.wakeOverdue()
    }
    if !overdue.isEmpty {
      timers.after(Self.diskTimeout) { [weak self] in self?.wakeOverdue() }
    }
  }

  private func wakeOverdue() {
    let due = overdue
    overdue = []
    for id in due { wake(id) }
  }
}

extension ScheduleMonitor {
  convenience init(
    services: Services, state: StateDirectory, driver: EngineDriver,
    workers: WorkerRegistry, returning: ReturningWorkers
  ) {
    func wake(_ id: WorkerID) {
      guard let worker = workers[id], !returning.whenAdopted(id, { wake(id) }) else { return }
      driver.wake(id, by: worker.configuration.wakeAt)
    }
    self.init(
      path: state.path + "/schedule", timers: services.loop, files: services.stateFiles,
      workers: workers, wake: wake
    ) { [log = services.log] in log(.warning, $0) }
  }
}

extension EngineDriver {
  /// Wakes a worker whose time has come. One that is being suspended or hibernated wakes after
  /// that.
  ///
  /// - Returns: whether it has to be woken.
  @discardableResult
  func wake(_ id: WorkerID, by schedules: [CalendarSchedule]) -> Bool {
    guard let workerState = state.state(of: id), workerState.sleeps || workerState.isTransit else {
      return false
    }
    let lines = schedules.map(\.text).joined(separator: ", ")
    self.send(.wakeNeeded(id, "its schedule (\(lines))"))
    return true
  }
}

/// Finds the times of schedules in the machine's time zone.
enum LocalTime {
  /// The number of seconds that local time is ahead of UTC at a time, by the rules of TZ or
  /// /etc/localtime.
  static func offset(at seconds: Int64) -> Int {
    var clock = time_t(seconds)
    var local = tm()
    tzset()
    localtime_r(&clock, &local)
    return Int(local.tm_gmtoff)
  }

  /// The next time of a schedule, in seconds since 1970. In a DST gap the time moves forward by the
  /// length of the gap. A time of day that occurs twice, when the clock is put back, counts the
  /// first time.
  ///
  /// - Parameter offset: local time's offset from UTC at a time, in seconds.
  static func next(
    _ schedule: CalendarSchedule, after now: Int64, offset: (Int64) -> Int = Self.offset
  ) -> Int64? {
    var result = candidate(schedule, after: now, offset)
    while let time = result, isRepeat(time, offset) {
      result = candidate(schedule, after: time, offset)
    }
    return result
  }

  private static func candidate(
    _ schedule: CalendarSchedule, after now: Int64, _ offset: (Int64) -> Int
  ) -> Int64? {
    let before = offset(now)
    guard let first = schedule.next(after: now, utcOffset: before) else { return nil }
    let after = offset(first)
    guard after != before else { return first }
    // The clock is put forward or back between the two times.
    guard let second = schedule.next(after: now, utcOffset: after), offset(second) == after else {
      return first
    }
    return second
  }

  /// Whether the clock has shown the same time of day shortly before, because it was put back
  /// since.
  private static func isRepeat(_ time: Int64, _ offset: (Int64) -> Int) -> Bool {
    let earlier = offset(time - 7200)
    let difference = Int64(earlier - offset(time))
    return difference > 0 && offset(time - difference) == earlier
  }
}
