// The calendar without a library: days since 1970-01-01 to year, month and day (proleptic
// Gregorian, as POSIX time is), by the well-known arithmetic on years that begin in March.

/// A day as year, month and day.
public struct CalendarDate: Hashable, Sendable {
  public var year: Int
  /// The month, 1–12.
  public var month: Int
  /// The day of the month, 1–31.
  public var day: Int

  public init(daysSince1970 days: Int) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
    month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  /// The day of the week. 0 is Sunday.
  static func weekday(daysSince1970 days: Int) -> Int {
    // 1970-01-01 was a Thursday.
    let weekday = (days + 4) % 7
    return weekday < 0 ? weekday + 7 : weekday
  }
}
