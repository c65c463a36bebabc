import Glibc
import Policy

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
