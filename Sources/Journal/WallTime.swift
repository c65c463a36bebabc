import Policy

/// A moment of the wall clock: nanoseconds since 1970, UTC.
public struct WallTime: Hashable, Comparable, Sendable {
  public var nanoseconds: Int64
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  public static func < (left: WallTime, right: WallTime) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
  public static func - (left: WallTime, right: Duration) -> WallTime {
    WallTime(nanoseconds: left.nanoseconds.subtractingReportingOverflow(right.wholeNanoseconds).0)
  }

  /// Whole seconds since 1970, rounded down.
  public var seconds: Int64 {
    nanoseconds >= 0 ? nanoseconds / 1_000_000_000 : (nanoseconds - 999_999_999) / 1_000_000_000
  }

  /// The number of days since 1970, in UTC.
  public var day: Int {
    Int(seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400)
  }

  /// The moment as text, in UTC and with milliseconds: `2026-11-21T08:46:07.104Z`.
  public var text: String {
    let inDay = Int(seconds) - day * 86_400
    let milliseconds = Int((nanoseconds - seconds * 1_000_000_000) / 1_000_000)
    let time = [inDay / 3600, inDay / 60 % 60, inDay % 60].map { padded($0, 2) }
    let date = CalendarDate(daysSince1970: day).text
    return "\(date)T\(time.joined(separator: ":")).\(padded(milliseconds, 3))Z"
  }
}

extension CalendarDate {
  /// The date as text: `2026-11-21`.
  public var text: String { "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))" }

  /// The Monday on or before a day. Both are days since 1970; day 0 was a Thursday.
  public static func weekStart(of day: Int) -> Int { day - ((day + 3) % 7 + 7) % 7 }

  /// The number of days since 1970.
  public static func daysSince1970(year: Int, month: Int, day: Int) -> Int {
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}

private func padded(_ number: Int, _ width: Int) -> String {
  let digits = String(number)
  return String(repeating: "0", count: max(0, width - digits.count)) + digits
}

extension WallTime {
  /// Reads what `text` writes, with or without a fraction. Only UTC is accepted; otherwise the
  /// result is nil.
  public init?(text: String) {
    let bytes = Array(text.utf8)
    func number(_ range: Range<Int>) -> Int? {
      guard range.upperBound <= bytes.count else { return nil }
      return Int(String(decoding: bytes[range], as: UTF8.self))
    }
    guard bytes.count >= 20, bytes.last == UInt8(ascii: "Z"), let year = number(0..<4),
      let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
      let minute = number(14..<16), let second = number(17..<19), (1...12).contains(month)
    else { return nil }
    let milliseconds = bytes[19] == UInt8(ascii: ".") ? number(20..<min(23, bytes.count - 1)) : 0
    let days = CalendarDate.daysSince1970(year: year, month: month, day: day)
    let seconds = Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
    nanoseconds = seconds * 1_000_000_000 + Int64(milliseconds ?? 0) * 1_000_000
  }
}
