import Testing

@testable import FootprintTrace

@Suite struct StatisticsTests {
  @Test func `Averages and percentiles are over time, not over samples`() {
    // The recording has 10 MB for one second, in many samples, and 20 MB for nine seconds.
    let many = (0..<100).map { (Double($0) / 100, 10.0) }
    let statistics = RecordingStatistics(.steps(many + [(1, 20)], end: 10))
    #expect(statistics.average == 19 * megabyte)
    #expect(statistics.p95 == 20 * megabyte && statistics.peak == 20 * megabyte)
    #expect(statistics.peakAt == 1 && statistics.seconds == 10)
    #expect(statistics.start == 10 * megabyte && statistics.last == 20 * megabyte)
    #expect(abs(statistics.secondsOver - 9) < 1e-9)
  }

  @Test func `A momentary peak isn't in the 95th percentile of the time`() {
    let statistics = RecordingStatistics(.steps([(0, 5), (50, 100), (51, 5)], end: 100))
    #expect(statistics.p95 == 5 * megabyte && statistics.peak == 100 * megabyte)
  }

  @Test func `A recording with a single sample has statistics`() {
    let statistics = RecordingStatistics(.steps([(0, 3)]))
    #expect(statistics.average == 3 * megabyte && statistics.p95 == 3 * megabyte)
    #expect(statistics.seconds == 0 && statistics.secondsOver == 0)
  }

  @Test func `A footprint at the limit isn't over the limit`() {
    let statistics = RecordingStatistics(.steps([(0, 16), (1, 16.5), (2, 1)], end: 3))
    #expect(abs(statistics.secondsOver - 1) < 1e-9)
  }

  @Test func `States are counted when a worker enters them`() {
    func state(_ at: Double, _ from: String, _ to: String) -> FootprintMark {
      FootprintMark(at: at, kind: .state, text: "", from: from, to: to)
    }
    let statistics = RecordingStatistics(
      .steps(
        [(0, 1)],
        marks: [
          state(1, "foreground", "background"), state(2, "background", "suspended"),
          state(3, "suspended", "hibernated"), state(4, "hibernated", "background"),
          state(5, "background", "terminated"), state(6, "terminated", "terminated"),
        ], end: 9))
    #expect(
      [statistics.backgrounds, statistics.hibernations, statistics.terminations] == [2, 1, 1])
  }
}

@Suite struct WarningTests {
  private func effects(
    _ samples: [(at: Double, size: Double)], _ marks: [FootprintMark]
  ) -> [WarningEffect] { WarningEffect.all(in: .steps(samples, marks: marks)) }

  private func warning(_ at: Double) -> FootprintMark {
    FootprintMark(at: at, kind: .warning, text: "")
  }

  @Test func `The freed memory of a warning is measured until the end of the fall`() throws {
    // The footprint falls in three steps, and then grows again at once.
    let effect = try #require(
      effects(
        [(0, 10), (1, 40), (1.2, 30), (1.5, 20), (1.6, 12), (1.8, 13), (3, 50), (4, 5)],
        [warning(1.1)]
      ).first)
    #expect(effect.before == 40 * megabyte && effect.after == 12 * megabyte)
    #expect(effect.givenBack == 28 * megabyte)
    #expect(abs(effect.fallSeconds - 0.5) < 1e-9)
  }

  @Test func `A footprint that only grows has freed no memory`() throws {
    let effect = try #require(effects([(0, 10), (1, 11), (2, 12)], [warning(0.5)]).first)
    #expect(effect.givenBack == 0 && effect.fallSeconds == 0)
    #expect(effect.sentence.contains("nothing"))
  }

  @Test func `Memory that a hibernation moves doesn't count as freed by the warning`() throws {
    let hibernated = FootprintMark(
      at: 2, kind: .state, text: "", from: "suspended", to: "hibernated", seconds: 0.5)
    let effect = try #require(
      effects([(0, 40), (1.3, 30), (1.7, 10), (2, 0)], [warning(1.1), hibernated]).first)
    #expect(effect.givenBack == 10 * megabyte)
  }

  @Test func `Each warning has its own effect`() {
    let all = effects(
      [(0, 40), (1.2, 30), (1.6, 20), (2, 20)], [warning(1.1), warning(1.5), warning(9)])
    #expect(all.map(\.givenBack) == [10 * megabyte, 10 * megabyte, 0])
  }

  @Test func `Warnings before the first sample and after the last one are permitted`() {
    let all = effects([(1, 8), (2, 4)], [warning(0), warning(100)])
    #expect(all.map(\.before) == [8 * megabyte, 4 * megabyte])
  }
}

@Suite struct ComparisonTests {
  private func comparison(_ a: Recording, _ b: Recording) -> RecordingComparison {
    RecordingComparison((name: "a.footprint", recording: a), (name: "b.footprint", recording: b))
  }

  @Test func `Differences are given in bytes and in percent of the first recording`() throws {
    let pair = comparison(.steps([(0, 8)], end: 2), .steps([(0, 10)], end: 2))
    let peak = try #require(pair.metric("peak"))
    #expect(peak.difference == Double(2 * megabyte) && peak.percent == 25)
    #expect(pair.metric("secondsOver")?.percent == nil)
    #expect(pair.metric("givenBack") == nil)
  }

  @Test func `A growth limit is exceeded only by growth above it, not by growth equal to it`()
    throws
  {
    let pair = comparison(.steps([(0, 8)], end: 2), .steps([(0, 10)], end: 2))
    let peak = try #require(pair.metric("peak"))
    #expect(GrowthLimit.percent(25).excess(of: peak) == nil)
    #expect(GrowthLimit.bytes(2 * megabyte).excess(of: peak) == nil)
    #expect(
      GrowthLimit.percent(10).excess(of: peak) == "peak: grown by 2 MB (25 %), more than 10 %")
    #expect(GrowthLimit.bytes(megabyte).excess(of: peak) != nil)
    let reversed = try #require(
      comparison(.steps([(0, 10)], end: 2), .steps([(0, 8)], end: 2)).metric("peak"))
    #expect(GrowthLimit.percent(0).excess(of: reversed) == nil)
  }

  @Test func `Growth from 0 exceeds every limit in percent`() throws {
    let pair = comparison(.steps([(0, 0)], end: 2), .steps([(0, 1)], end: 2))
    let peak = try #require(pair.metric("peak"))
    #expect(GrowthLimit.percent(1000).excess(of: peak) != nil)
  }
}
