import Glibc
import Policy

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
