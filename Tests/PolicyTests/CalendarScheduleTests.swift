import Testing

@testable import Policy

@Suite struct `Calendar schedules` {
  /// The seconds since 1970 of a moment in UTC.
  private static func utc(
    _ year: Int, _ month: Int, _ day: Int, _ hour: Int = 0, _ minute: Int = 0, _ second: Int = 0
  ) -> Int64 {
    var days = 0
    // This is slow and simple, so that it doesn't use the arithmetic under test.
    while CalendarDate(daysSince1970: days).year < year { days += 300 }
    while CalendarDate(daysSince1970: days).year >= year { days -= 1 }
    let wanted = (year, month, day)
    func date() -> (Int, Int, Int) {
      let date = CalendarDate(daysSince1970: days)
      return (date.year, date.month, date.day)
    }
    while date() < wanted { days += 1 }
    return Int64(days) * 86_400 + Int64(hour * 3_600 + minute * 60 + second)
  }

  static let cases: [(String, Int64, Int64)] = [
    ("* * * * *", utc(2026, 11, 21, 10, 0, 0), utc(2026, 11, 21, 10, 1)),
    ("* * * * *", utc(2026, 11, 21, 10, 0, 59), utc(2026, 11, 21, 10, 1)),
    ("0 3 * * *", utc(2026, 11, 21, 3), utc(2026, 11, 22, 3)),
    ("0 3 * * *", utc(2026, 11, 21, 2, 59, 59), utc(2026, 11, 21, 3)),
    ("*/15 9-17 * * mon-fri", utc(2026, 11, 21, 12), utc(2026, 11, 23, 9)),
    ("*/15 9-17 * * mon-fri", utc(2026, 11, 23, 9, 50), utc(2026, 11, 23, 10)),
    ("59 23 31 12 *", utc(2026, 12, 31, 23, 59), utc(2027, 12, 31, 23, 59)),
    ("0 0 29 2 *", utc(2096, 3, 1), utc(2104, 2, 29)),
    ("0 0 * * 7", utc(2026, 11, 21), utc(2026, 11, 22)),
    ("0 0 * * sun", utc(2026, 11, 21), utc(2026, 11, 22)),
    // Either of the two has to match, as in cron: the 13th, or a Friday.
    ("0 0 13 * fri", utc(2026, 11, 21), utc(2026, 11, 27)),
    ("0 0 13 * fri", utc(2026, 12, 11, 1), utc(2026, 12, 13)),
    // If one of the fields begins with `*`, both must match.
    ("0 0 */2 * fri", utc(2026, 11, 21), utc(2026, 11, 27)),
    ("5,35 8,20 1 jan,jul *", utc(2026, 11, 21), utc(2027, 1, 1, 8, 5)),
    ("10/20 * * * *", utc(2026, 11, 21, 10, 31), utc(2026, 11, 21, 10, 50)),
    ("@daily", utc(2026, 11, 21, 0, 0), utc(2026, 11, 22)),
    ("@WEEKLY", utc(2026, 11, 21), utc(2026, 11, 22)),
    ("@monthly", utc(2026, 11, 21), utc(2026, 12, 1)),
    ("0 0 1 1 *", utc(1969, 6, 1), utc(1970, 1, 1)),
  ]

  @Test(arguments: cases) func `A calendar schedule names the next instant`(
    text: String, from: Int64, to: Int64
  ) throws {
    #expect(try CalendarSchedule(parsing: text).next(after: from) == to)
  }

  @Test func `A calendar schedule uses the local time that it is given`() throws {
    let daily = try CalendarSchedule(parsing: "0 3 * * *")
    let night = Self.utc(2026, 11, 21)
    #expect(daily.next(after: night, utcOffset: 3_600) == Self.utc(2026, 11, 21, 2))
    #expect(daily.next(after: night, utcOffset: -5 * 3_600) == Self.utc(2026, 11, 21, 8))
    #expect(
      daily.next(after: night, utcOffset: 5 * 3_600 + 1_800) == Self.utc(2026, 11, 21, 21, 30))
    #expect(daily.next(after: .max, utcOffset: 1) == nil)
    #expect(daily.next(after: .min, utcOffset: -1) == nil)
  }

  @Test func `A calendar schedule agrees with a search minute by minute`() throws {
    let lines = ["7 */5 * * 1-5", "*/7 0 28-31 * *", "30 12 1,15 */3 tue", "0 0 31 * *"]
    for line in lines {
      let schedule = try CalendarSchedule(parsing: line)
      var time = Self.utc(2027, 1, 30, 23, 58, 30)
      for _ in 0..<20 {
        let next = try #require(schedule.next(after: time))
        var minute = (time / 60 + 1) * 60
        while !Self.holds(schedule, at: minute) { minute += 60 }
        #expect(next == minute, "\(line)")
        time = next
      }
    }
  }

  private static func holds(_ schedule: CalendarSchedule, at time: Int64) -> Bool {
    let day = Int(time / 86_400)
    let date = CalendarDate(daysSince1970: day)
    let bit = { (set: UInt64, value: Int) in set >> UInt64(value) & 1 == 1 }
    let byDay = bit(schedule.days, date.day)
    let byWeekday = bit(schedule.weekdays, CalendarDate.weekday(daysSince1970: day))
    return bit(schedule.minutes, Int(time / 60 % 60)) && bit(schedule.hours, Int(time / 3_600 % 24))
      && bit(schedule.months, date.month)
      && (schedule.eitherDay ? byDay || byWeekday : byDay && byWeekday)
  }

  static let wrong: [(String, Int, String)] = [
    ("", 0, "has 0 fields, not 5"), ("* * * *", 0, "has 4 fields"),
    ("0 0 3 * * *", 0, "has 6 fields"), ("60 * * * *", 0, "has a wrong minute: `60`"),
    ("0  24 * * *", 3, "has a wrong hour: `24`"), ("0 0 0 * *", 4, "wrong day of the month"),
    ("0 0 1 foo *", 6, "has a wrong month: `foo`"), ("0 0 * * 8", 8, "wrong day of the week"),
    ("0 0 * * fri-mon", 8, "ends before it begins"), ("*/0 * * * *", 0, "has a step"),
    ("1,,2 * * * *", 2, "wrong minute: ``"), ("1-2-3 * * * *", 0, "wrong minute"),
    ("-1 * * * *", 0, "wrong minute"), ("0 0 30 2 *", 4, "never comes"),
    ("@reboot", 0, "that is no time"), ("@fortnightly", 0, "can't be `@fortnightly`"),
    ("0 0 L * *", 4, "wrong day of the month"), ("99999999999999999999 * * * *", 0, "wrong minute"),
  ]

  @Test(arguments: wrong) func `A wrong calendar schedule says where it is wrong`(
    text: String, offset: Int, expectedText: String
  ) {
    do throws(ScheduleError) {
      let schedule = try CalendarSchedule(parsing: text)
      Issue.record("\(schedule)")
    } catch {
      #expect(error.offset == offset)
      #expect(error.message.contains(expectedText), "\(error.message)")
    }
  }

  @Test func `Days since 1970 convert to the dates of the calendar`() {
    #expect(CalendarDate(daysSince1970: 0) == CalendarDate(1970, 1, 1))
    #expect(CalendarDate(daysSince1970: -1) == CalendarDate(1969, 12, 31))
    #expect(CalendarDate(daysSince1970: 11_016) == CalendarDate(2000, 2, 29))
    #expect(CalendarDate(daysSince1970: 20_778) == CalendarDate(2026, 11, 21))
    #expect(CalendarDate.weekday(daysSince1970: 20_778) == 6)
    #expect(CalendarDate.weekday(daysSince1970: -5) == 6)
  }
}

extension CalendarDate {
  fileprivate init(_ year: Int, _ month: Int, _ day: Int) {
    self.init(daysSince1970: 0)
    (self.year, self.month, self.day) = (year, month, day)
  }
}
