import Policy
import Testing

@Suite("Units")
struct UnitsTests {
  @Test(
    "Sizes are printed as people write them",
    arguments: [
      (ByteCount(0), "0 B"), (ByteCount(512), "512 B"), (.kilobytes(4), "4 KB"),
      (ByteCount(1536), "1.5 KB"), (.megabytes(16), "16 MB"), (.gigabytes(2), "2 GB"),
      (.megabytes(16) + .kilobytes(307), "16.3 MB"),
    ])
  func sizes(_ size: ByteCount, _ text: String) { #expect(size.description == text) }

  @Test(
    "Durations are printed as policies write them",
    arguments: [
      (Duration.zero, "0s"), (.milliseconds(500), "500ms"), (.seconds(2), "2s"),
      (.seconds(90), "90s"), (.seconds(600), "10m"), (.seconds(3600), "1h"),
    ])
  func durations(_ duration: Duration, _ text: String) { #expect(duration.policyText == text) }

  @Test func `A share is taken of the whole, and a size as it is`() {
    let whole = ByteCount.megabytes(1000)
    #expect(PressureCondition.Amount.percent(15).bytes(of: whole) == .megabytes(150))
    #expect(PressureCondition.Amount.bytes(.megabytes(7)).bytes(of: whole) == .megabytes(7))
  }

  @Test func `Times never overflow: a sum that is too large ends at the last instant`() {
    let later = Instant(nanoseconds: 5) + .seconds(Int64.max / 2)
    #expect(later == Instant(nanoseconds: .max))
    #expect(Instant(nanoseconds: -5) + .seconds(Int64.min / 2) == Instant(nanoseconds: .min))
    #expect(Instant(nanoseconds: 7) - Instant(nanoseconds: 4) == .nanoseconds(3))
  }
}

@Suite("The default policy")
struct DefaultPolicyTests {
  @Test func `Every rung has the name that a policy file uses`() {
    #expect(
      Ladder.Rung.allCases.map(\.text) == [
        "trim", "hibernate", "purge", "warn", "terminate suspended", "terminate background",
        "terminate foreground",
      ])
  }

  @Test func `The default policy does nothing at normal pressure`() {
    #expect(Ladder()[.normal].isEmpty)
    #expect(PressureRules()[.normal] == nil)
    #expect(PressureLevel.normal < .warning && PressureLevel.urgent < .critical)
  }
}
