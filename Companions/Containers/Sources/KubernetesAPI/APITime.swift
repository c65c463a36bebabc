/// Times as the API writes them: whole seconds, in UTC.
public enum APITime {
  /// The time as text, such as `2026-11-21T08:46:07Z`.
  public static func text(_ secondsSince1970: Int64) -> String {
    let day = floorDivided(secondsSince1970, by: 86_400)
    let second = secondsSince1970 - day * 86_400
    let date = civil(day: day)
    let parts = [second / 3600, second / 60 % 60, second % 60].map { padded($0, 2) }
    return "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))"
      + "T\(parts.joined(separator: ":"))Z"
  }

  /// The date of the Gregorian calendar for a number of days since 1970. March counts as the first
  /// month, so that a leap day is the last day of its year.
  private static func civil(day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = day + 719_468
    let era = floorDivided(shifted, by: 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let isNextYear = month >= 10
    return (
      yearOfEra + era * 400 + (isNextYear ? 1 : 0), isNextYear ? month - 9 : month + 3,
      dayOfYear - (153 * month + 2) / 5 + 1
    )
  }

  private static func floorDivided(_ value: Int64, by divisor: Int64) -> Int64 {
    let quotient = value / divisor
    return value % divisor < 0 ? quotient - 1 : quotient
  }

  private static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
