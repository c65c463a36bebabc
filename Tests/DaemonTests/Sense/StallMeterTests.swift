import Policy
import Testing

@testable import Daemon

@Suite struct `Stalls on memory` {
  private func share(_ readings: [(seconds: Double, some: UInt64)]) -> [Double?] {
    var meter = StallMeter()
    return readings.map { reading in
      meter.add(
        some: reading.some, full: 0, at: Instant(nanoseconds: Int64(reading.seconds * 1e9)),
        window: .seconds(2))?.some
    }
  }

  @Test func `Stalls on memory are a share of the window, not of the time since the last reading`()
  {
    // The stall is 300 ms in the first second, and there is a reading in the midst of the second.
    #expect(share([(0, 0), (1, 300_000), (1.01, 300_000), (2, 300_000)]) == [nil, 15, 15, 15])
  }

  @Test func `Stalls on memory are forgotten when the window has passed`() {
    #expect(share([(0, 0), (1, 300_000), (3, 300_000), (4, 300_000)]) == [nil, 15, 0, 0])
  }

  @Test func `Stalls on memory are unknown before the first reading, and count as none`() {
    #expect(share([(0, 0), (0.1, 100_000)]) == [nil, 5])
  }
}
