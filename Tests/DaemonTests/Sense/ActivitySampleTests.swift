import Policy
import Testing

@testable import Daemon

@Suite struct `A running worker that doesn't run on any processor` {
  private func sample(isUnchanged: Bool = true) -> ActivitySample {
    var sample = ActivitySample()
    sample.cpu = 500
    sample.at = Instant(nanoseconds: 1)
    sample.isUnchanged = isUnchanged
    return sample
  }

  @Test
  func `A worker that uses no processor time is examined in full at every thirtieth sample only`() {
    var sample = sample()
    let skipped = (0..<90).map { sample.canSkip(cpu: 500, at: Instant(nanoseconds: $0)) }
    let period = Array(repeating: true, count: 29) + [false]
    #expect(skipped == period + period + period)
  }

  @Test func `A sample that is skipped counts, so that the next share covers one second`() {
    var sample = sample()
    let skips1 = sample.canSkip(cpu: 500, at: Instant(nanoseconds: 77))
    #expect(skips1)
    #expect(sample.at == Instant(nanoseconds: 77))
  }

  @Test func `A worker is examined as soon as it has used processor time`() {
    var sample = sample()
    let skips2 = sample.canSkip(cpu: 501, at: Instant(nanoseconds: 77))
    #expect(!skips2)
    #expect(sample.at == Instant(nanoseconds: 1))
  }

  @Test func `A worker is examined if its processor time is unknown, or something had changed`() {
    var first = sample()
    let skips3 = first.canSkip(cpu: nil, at: Instant(nanoseconds: 77))
    #expect(!skips3)
    var second = sample(isUnchanged: false)
    let skips4 = second.canSkip(cpu: 500, at: Instant(nanoseconds: 77))
    #expect(!skips4)
  }
}
