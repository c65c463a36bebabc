import Linux
import Policy

/// Computes the shares of time stalled on memory from the kernel's running totals. The kernel's own
/// averages cover ten seconds or more, and would hide a short spike.
struct StallMeter {
  private typealias Totals = (some: UInt64, full: UInt64, at: Instant)
  /// The totals, the latest last. The first is the newest that is a whole window old, if there is
  /// one.
  private var history: [Totals] = []

  /// The stall of some task at the last reading, in microseconds; nil if that reading found none or
  /// there was none.
  private(set) var someTotal: UInt64?

  /// The stalls in percent of the window that ends now; nil the first time, and without PSI
  /// (`stall` is nil). Stalls before the first reading aren't known, and count as none.
  mutating func read(
    _ stall: PressureStall?, at now: Instant, window: Duration
  ) -> (some: Double, full: Double)? {
    someTotal = stall?.some.totalMicroseconds
    guard let stall else { return nil }
    let (some, full) = (stall.some.totalMicroseconds, stall.full?.totalMicroseconds ?? 0)
    history.append((some, full, now))
    let whole = history.lastIndex { $0.at + window <= now } ?? 0
    history.removeFirst(whole)
    guard history.count > 1, let first = history.first, now > first.at else { return nil }
    let span = Double(max(now - first.at, window).wholeNanoseconds) / 1000
    func percent(_ before: UInt64, _ after: UInt64) -> Double {
      min(100, max(0, Double(after &- before) / span * 100))
    }
    return (percent(first.some, some), percent(first.full, full))
  }
}
