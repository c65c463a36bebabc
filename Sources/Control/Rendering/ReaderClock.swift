import Glibc
import Linux

/// Converts a time in the past to a time of day in the reader's time zone.
public struct ReaderClock: Sendable {
  /// The present time in seconds since 1970.
  private let now: Int64
  /// The number of seconds by which local time is ahead of UTC at a time in seconds since 1970.
  private let offset: @Sendable (Int64) -> Int64

  init(now: Int64, offset: @escaping @Sendable (Int64) -> Int64) {
    self.now = now
    self.offset = offset
  }

  /// Uses the machine's clock, and the rules of TZ or /etc/localtime.
  public init() {
    self.init(now: Clocks.realtime / 1_000_000_000) { seconds in
      var seconds = time_t(seconds)
      var local = tm()
      tzset()
      localtime_r(&seconds, &local)
      return Int64(local.tm_gmtoff)
    }
  }

  /// The time of day, such as `14:02`. On another day the date comes first: `Nov 24 14:02`.
  public func text(secondsAgo: Double) -> String {
    guard secondsAgo.isFinite, secondsAgo.magnitude < 3.2e9 else { return "?" }
    let time = local(now - Int64(secondsAgo.rounded()))
    let ofDay = Self.timeOfDay(time)
    return Self.day(time) == Self.day(local(now)) ? ofDay : "\(Self.date(time)) \(ofDay)"
  }

  private func local(_ seconds: Int64) -> Int64 { seconds + offset(seconds) }

  private static func day(_ local: Int64) -> Int64 { local / 86_400 }

  private static func timeOfDay(_ local: Int64) -> String {
    let minutes = (local - day(local) * 86_400) / 60
    return "\(twoDigits(minutes / 60)):\(twoDigits(minutes % 60))"
  }

  private static func date(_ local: Int64) -> String {
    var seconds = time_t(local)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    let months = [
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    return "\(months[min(max(Int(parts.tm_mon), 0), 11)]) \(parts.tm_mday)"
  }

  private static func twoDigits(_ number: Int64) -> String {
    number < 10 ? "0\(number)" : "\(number)"
  }
}
