import Testing

@testable import Hibernation

@Suite("Turns of background fills") struct FillTurnsTests {
  @Test("A fill waits while a first answer is under way, for five seconds at most")
  func answers() {
    let turns = FillTurns(maxConcurrent: 2)
    turns.whileAnswering {
      #expect(!turns.enter(after: .zero))
      #expect(!turns.enter(after: .milliseconds(999)))
      #expect(turns.enter(after: FillTurns.maxWaitForAnswers))
    }
    #expect(turns.enter(after: .zero))
  }

  @Test("No more fills than permitted use the processors, unless they hang")
  func fills() {
    let turns = FillTurns(maxConcurrent: 1)
    #expect(turns.enter(after: .zero))
    #expect(!turns.enter(after: .seconds(4)))
    #expect(turns.enter(after: FillTurns.maxWait))
    turns.leave()
    #expect(!turns.enter(after: .zero), "one of the two is still under way")
    turns.leave()
    #expect(turns.enter(after: .zero))
  }

  @Test("An answer that fails is over")
  func failure() {
    struct Failed: Error {}
    let turns = FillTurns(maxConcurrent: 1)
    #expect(throws: Failed.self) { try turns.whileAnswering { throw Failed() } }
    #expect(turns.enter(after: .zero))
  }
}
