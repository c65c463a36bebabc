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
    var seconds = time_t(time)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    return dateText(parts, as: time / 86_400 == local(now) / 86_400 ? "%H:%M" : "%b %-d %H:%M")
  }

  private func local(_ seconds: Int64) -> Int64 { seconds + offset(seconds) }
}

/// Formats the components of a time as strftime(3) does.
package func dateText(_ components: tm, as format: String) -> String {
  var components = components
  var text = [CChar](repeating: 0, count: 64)
  let length = strftime(&text, text.count, format, &components)
  return String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
