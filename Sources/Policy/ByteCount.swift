// The units of policy files. Sizes are powers of 1024, as in the talks that Dormouse's policies
// come from.

/// A number of bytes.
public struct ByteCount: Codable, Hashable, Comparable, Sendable, AdditiveArithmetic {
  /// The number of bytes; never negative if it is a measurement.
  public var bytes: Int64

  public init(_ bytes: Int64) { self.bytes = bytes }

  /// A size of `count` × 1024 bytes.
  public static func kilobytes(_ count: Int64) -> ByteCount { ByteCount(count * 1024) }
  /// A size of `count` × 1024² bytes.
  public static func megabytes(_ count: Int64) -> ByteCount { ByteCount(count * 1024 * 1024) }
  /// A size of `count` × 1024³ bytes.
  public static func gigabytes(_ count: Int64) -> ByteCount {
    ByteCount(count * 1024 * 1024 * 1024)
  }

  public static let zero = ByteCount(0)
  public static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }
  public static func + (left: ByteCount, right: ByteCount) -> ByteCount {
    ByteCount(left.bytes + right.bytes)
  }
  public static func - (left: ByteCount, right: ByteCount) -> ByteCount {
    ByteCount(left.bytes - right.bytes)
  }
}

extension ByteCount: CustomStringConvertible {
  /// The size for people, with at most one decimal, and none if it is zero: `512 B`, `4 KB`, `16.3
  /// MB`, `1.5 GB`.
  public var description: String {
    let magnitude = bytes.magnitude
    if magnitude >= 1 << 30 { return text(in: 1 << 30, "GB") }
    if magnitude >= 1 << 20 { return text(in: 1 << 20, "MB") }
    if magnitude >= 1 << 10 { return text(in: 1 << 10, "KB") }
    return "\(bytes) B"
  }

  /// Not inlined: the compiler (Swift 6.3) would order the inlined copies differently in each
  /// build.
  @inline(never)
  private func text(in size: Int64, _ unit: String) -> String {
    let tenths = (Double(bytes) / Double(size) * 10).rounded()
    let whole = Int64(tenths / 10)
    let remainder = Int64(tenths) - whole * 10
    return remainder == 0 ? "\(whole) \(unit)" : "\(whole).\(remainder.magnitude) \(unit)"
  }
}

/// A point in time on the daemon's own clock, in nanoseconds since an arbitrary start. The clock
/// counts while the machine is suspended (`CLOCK_BOOTTIME`). The engine never reads a clock; each
/// event brings the time.
public struct Instant: Codable, Hashable, Comparable, Sendable {
  public var nanoseconds: Int64

  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  public static let zero = Instant(nanoseconds: 0)

  public static func < (left: Instant, right: Instant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
  /// The sum, clamped to 64 bits: a duration of years in a policy means never, and doesn't crash.
  public static func + (left: Instant, right: Duration) -> Instant {
    let (sum, overflow) = left.nanoseconds.addingReportingOverflow(right.wholeNanoseconds)
    return Instant(nanoseconds: overflow ? (right < .zero ? .min : .max) : sum)
  }
  public static func - (left: Instant, right: Instant) -> Duration {
    .nanoseconds(left.nanoseconds - right.nanoseconds)
  }
}

extension Duration {
  /// The duration in nanoseconds, rounded towards zero and clamped to 64 bits (±292 years).
  public var wholeNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    return overflow ? (seconds < 0 ? .min : .max) : product + attoseconds / 1_000_000_000
  }

  /// The duration in seconds, with its fraction.
  public var seconds: Double { Double(wholeNanoseconds) / 1_000_000_000 }

  /// The duration in milliseconds, with its fraction.
  public var milliseconds: Double { Double(wholeNanoseconds) / 1_000_000 }

  /// The duration as policies write it, in the largest unit that is whole: `500ms`, `2s`, `10m`,
  /// `1h`.
  public var policyText: String {
    let nanoseconds = wholeNanoseconds
    if nanoseconds == 0 { return "0s" }
    if let text = Self.text(nanoseconds, in: 3_600_000_000_000, "h") { return text }
    if let text = Self.text(nanoseconds, in: 60_000_000_000, "m") { return text }
    if let text = Self.text(nanoseconds, in: 1_000_000_000, "s") { return text }
    return "\(nanoseconds / 1_000_000)ms"
  }

  /// The duration in a unit. `nil`: it isn't a whole number of the unit. Not inlined, for the same
  /// reason as `ByteCount.text`.
  @inline(never)
  private static func text(_ nanoseconds: Int64, in size: Int64, _ unit: String) -> String? {
    nanoseconds % size == 0 ? "\(nanoseconds / size)\(unit)" : nil
  }
}
