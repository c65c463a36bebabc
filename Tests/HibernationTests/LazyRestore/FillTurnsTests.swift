import Testing

@testable import Hibernation

@Suite("Turns of background fills") struct FillTurnsTests {
  @Test func `A fill waits while a first answer is under way, for five seconds at most`() {
    let turns = FillTurns(maxConcurrent: 2)
    turns.whileAnswering {
      #expect(!turns.enter(after: .zero))
      #expect(!turns.enter(after: .milliseconds(999)))
      #expect(turns.enter(after: FillTurns.maxWaitForAnswers))
    }
    #expect(turns.enter(after: .zero))
  }

  @Test func `No more fills than permitted use the processors, unless they hang`() {
    let turns = FillTurns(maxConcurrent: 1)
    #expect(turns.enter(after: .zero))
    #expect(!turns.enter(after: .seconds(4)))
    #expect(turns.enter(after: FillTurns.maxWait))
    turns.leave()
    #expect(!turns.enter(after: .zero), "one of the two is still under way")
    turns.leave()
    #expect(turns.enter(after: .zero))
  }

  @Test func `An answer that fails is over`() {
    struct Failed: Error {}
    let turns = FillTurns(maxConcurrent: 1)
    #expect(throws: Failed.self) { try turns.whileAnswering { throw Failed() } }
    #expect(turns.enter(after: .zero))
  }
}
