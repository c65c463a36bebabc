import Policy
import Testing

@testable import Daemon

/// Schedules in a zone that is two hours ahead of UTC in summer and one in winter, in 2026.
@Suite("A schedule in local time") struct LocalTimeTests {
  private static let spring: Int64 = 1_774_746_000  // 29 March, 01:00 UTC
  private static let autumn: Int64 = 1_792_890_000  // 25 October, 01:00 UTC

  private static func offset(at seconds: Int64) -> Int {
    (spring..<autumn).contains(seconds) ? 7200 : 3600
  }

  private static func next(_ line: String, after now: Int64) throws -> Int64? {
    LocalTime.next(try CalendarSchedule(parsing: line), after: now, offset: offset)
  }

  @Test func `A scheduled time occurs once when the clock is put back`() throws {
    // 02:30 in summer time is 00:30 UTC, and again, in winter time, 01:30 UTC.
    let first = Self.autumn - 1800
    #expect(try Self.next("30 2 * * *", after: Self.autumn - 7200) == first)
    let following = Self.autumn + 86_400 + 1800
    #expect(try Self.next("30 2 * * *", after: first) == following)
    #expect(try Self.next("30 2 * * *", after: first + 900) == following)
    #expect(try Self.next("30 2 * * *", after: Self.autumn + 60) == following)
  }

  @Test func `A scheduled time that the clock skips occurs later by as much`() throws {
    // There is no 02:30 on that day. 03:30 in summer time is 01:30 UTC.
    #expect(try Self.next("30 2 * * *", after: Self.spring - 7200) == Self.spring + 1800)
    #expect(
      try Self.next("30 2 * * *", after: Self.spring + 1800) == Self.spring + 86_400 - 1800)
  }

  @Test func `A schedule keeps its time of day when daylight saving time begins or ends`() throws {
    // 12:00 is 10:00 UTC in summer and 11:00 UTC in winter.
    let noon = Self.autumn + 10 * 3600
    #expect(try Self.next("0 12 * * *", after: Self.autumn - 3600) == noon)
    #expect(
      try Self.next("0 12 * * *", after: Self.spring - 3600) == Self.spring + 9 * 3600)
  }
}
