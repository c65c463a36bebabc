import Testing

@testable import Linux

@Suite("Runnable threads") struct RunnableThreadsTests {
  @Test("The calling thread is one of the machine's runnable threads")
  func calling() throws {
    #expect(try #require(RunnableThreads.count()) >= 1)
  }

  @Test("The number is before the slash of the fourth word, and another text has none")
  func parsing() {
    #expect(RunnableThreads.count(in: "0.20 0.18 0.12 7/80 11206\n") == 7)
    for text in ["", "0.20 0.18 0.12", "0.20 0.18 0.12 x/80 1"] {
      #expect(RunnableThreads.count(in: text) == nil)
    }
  }
}
