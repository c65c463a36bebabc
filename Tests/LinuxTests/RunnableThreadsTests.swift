import Testing

@testable import Linux

@Suite("Runnable threads") struct RunnableThreadsTests {
  @Test func `The calling thread is one of the machine's runnable threads`() throws {
    #expect(try #require(RunnableThreads.count()) >= 1)
  }

  @Test func `The number is before the slash of the fourth word, and another text has none`() {
    #expect(RunnableThreads.count(in: "0.20 0.18 0.12 7/80 11206\n") == 7)
    for text in ["", "0.20 0.18 0.12", "0.20 0.18 0.12 x/80 1"] {
      #expect(RunnableThreads.count(in: text) == nil)
    }
  }
}
