/// When something recurs, by fields of the calendar: a line of cron(5) without its command.
///
/// As in cron, a line that restricts both the day of the month and the day of the week means the
/// days on which *either* matches. The schedule knows no time zones: the caller passes the offset.
public struct CalendarSchedule: Hashable, Sendable {
  /// The text as it was written.
  public let text: String
  /// One bit for each minute, 0–59.
  let minutes: UInt64
  /// One bit for each hour, 0–23.
  let hours: UInt64
  /// One bit for each day of the month, 1–31.
  let days: UInt64
  /// One bit for each month, 1–12.
  let months: UInt64
  /// One bit for each day of the week, 0–6. 0 is Sunday.
  let weekdays: UInt64
  /// Whether a day has to match only one of `days` and `weekdays`, because neither field begins
  /// with `*`.
  let eitherDay: Bool

  /// The longest possible gap between two days of a schedule, in days, with some margin: 29
  /// February from 2096 to 2104.
  static let horizon = 366 * 9

  /// The first instant after `time` that the schedule names. `nil`: it never comes (30 February).
  ///
  /// - Parameters:
  ///   - time: seconds since 1970-01-01 00:00 UTC.
  ///   - utcOffset: seconds that local time is ahead of UTC. If the clock is put forward or back
  ///   before the result, ask again then.
  public func next(after time: Int64, utcOffset: Int = 0) -> Int64? {
    // The next whole minute, in local time.
    let (local, overflow) = time.addingReportingOverflow(Int64(utcOffset))
    guard !overflow, local.magnitude < 1 << 52 else { return nil }
    let minute = Int(floorDivided(local, by: 60)) + 1
    let firstDay = Int(floorDivided(Int64(minute), by: 1_440))
    for day in firstDay...(firstDay + Self.horizon) where holds(onDay: day) {
      let earliest = day == firstDay ? minute - firstDay * 1_440 : 0
      if let minuteOfDay = firstMinute(from: earliest) {
        return (Int64(day) * 1_440 + Int64(minuteOfDay)) * 60 - Int64(utcOffset)
      }
    }
    return nil
  }

  /// The first minute of the day that matches, from `earliest` on.
  private func firstMinute(from earliest: Int) -> Int? {
    for hour in (earliest / 60)..<24 where hours.hasBit(hour) {
      let first = hour == earliest / 60 ? earliest % 60 : 0
      let left = minutes >> UInt64(first)
      if left != 0 { return hour * 60 + first + left.trailingZeroBitCount }
    }
    return nil
  }

  private func holds(onDay number: Int) -> Bool {
    let date = CalendarDate(daysSince1970: number)
    guard months.hasBit(date.month) else { return false }
    let byDate = days.hasBit(date.day)
    let byWeekday = weekdays.hasBit(CalendarDate.weekday(daysSince1970: number))
    return eitherDay ? byDate || byWeekday : byDate && byWeekday
  }
}

extension UInt64 {
  fileprivate func hasBit(_ bit: Int) -> Bool { self & (1 << UInt64(bit)) != 0 }
}

private func floorDivided(_ value: Int64, by divisor: Int64) -> Int64 {
  let quotient = value / divisor
  return value % divisor < 0 ? quotient - 1 : quotient
}
