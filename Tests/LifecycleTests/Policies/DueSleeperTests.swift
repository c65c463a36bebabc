import Policy
import TestSupport
import Testing

@testable import Lifecycle

@Suite("Sleepers that are due to be hibernated") struct DueSleeperTests {
  private static func rate(_ milliseconds: Int64, for megabytes: Int64) -> ResumeRate {
    var rate = ResumeRate()
    rate.learn(ResumeRate.fixed + .milliseconds(milliseconds), .megabytes(megabytes))
    return rate
  }

  @Test("Each is examined again when the room or the rate lets it, and none that still can't")
  func candidates() {
    var random = TestRandom()
    var due = DueSleepers()
    var model: [Int: SleeperVerdict?] = [:]
    for _ in 0..<2000 {
      let slot = Int.random(in: 0..<40, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0:
        due.forget(slot, isDue: false)
        model[slot] = nil
      case 1:
        due.forget(slot, isDue: true)
        model[slot] = .some(nil)
      case 2, 3:
        guard model[slot] != nil else { continue }
        let verdicts: [SleeperVerdict] = [
          .lacksRoom(image: .megabytes(.random(in: 1...9, using: &random))),
          .slow(highest: Double.random(in: 0...3, using: &random)), .refused, .measuring,
        ]
        guard let verdict = verdicts.randomElement(using: &random) else { continue }
        due.set(verdict, of: slot)
        model[slot] = .some(verdict)
      default:
        let room = ByteCount.megabytes(.random(in: 0...9, using: &random))
        let rate = Self.rate(.random(in: 0...60, using: &random), for: 20)
        let candidates = due.collectCandidates(room: room, rate)
        for (slot, verdict) in model where Self.isLifted(verdict, room, rate) {
          model[slot] = .some(nil)
        }
        let expected = model.filter { $0.value == nil }.keys
        #expect(Set(candidates.map { Int($0) }) == Set(expected))
      }
    }
  }

  private static func isLifted(
    _ verdict: SleeperVerdict?, _ room: ByteCount, _ rate: ResumeRate
  ) -> Bool {
    switch verdict {
    case .lacksRoom(let image): image <= room
    case .slow(let highest): rate.isWithin(highest)
    case .measuring, .refused, nil: false
    }
  }

  @Test func `The highest rate is the one with which a resume takes as long as a launch`() {
    var random = TestRandom()
    for _ in 0..<500 {
      let footprint = ByteCount(.random(in: 1...400_000_000, using: &random))
      let rate = Self.rate(.random(in: 0...500, using: &random), for: 20)
      let expected = rate.expected(footprint)
      #expect(rate.isWithin(ResumeRate.highest(for: footprint, within: expected)))
      let less = expected - .nanoseconds(1 + Int64(Double(footprint.bytes) / 1_000))
      #expect(!rate.isWithin(ResumeRate.highest(for: footprint, within: less)))
    }
    #expect(!ResumeRate().isWithin(ResumeRate.highest(for: .megabytes(1), within: .zero)))
  }
}
