import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Threads for short work") struct ShortThreadsTests {
  private typealias Counter = JobsThatMayHangTests.Counter

  @Test("All work is done, even if much is submitted at once and again when the threads are idle")
  func allIsDone() throws {
    let done = Counter()
    for turn in 1...20 {
      for _ in 0..<50 { try #require(ShortThreads.start(name: "test") { done.add() }) }
      #expect(try eventually { done.count == turn * 50 })
    }
  }

  @Test("Work doesn't wait for the end of other work that was given to an idle thread")
  func besideEachOther() throws {
    let (gate, done) = (ThreadGate(), Counter())
    defer { gate.open() }
    for _ in 0..<10 {
      #expect(ShortThreads.start(name: "test") { gate.pass() })
      #expect(ShortThreads.start(name: "test") { done.add() })
    }
    #expect(try eventually { done.count == 10 })
  }

  @Test(
    "What work has captured is freed when it has ended, also while its thread waits for other work")
  func captures() throws {
    final class Held: Sendable {}
    for _ in 0..<10 {
      weak var weakHeld: Held?
      do {
        let held = Held()
        weakHeld = held
        #expect(ShortThreads.start(name: "test") { withExtendedLifetime(held) {} })
      }
      #expect(try eventually { weakHeld == nil })
    }
  }

  @Test func `At most three threads wait for other work`() throws {
    let done = Counter()
    // Threads of other tests have another name.
    for _ in 0..<20 { #expect(ShortThreads.start(name: "test-short") { done.add() }) }
    #expect(try eventually { done.count == 20 })
    #expect(
      try eventually {
        // A thread that has ended meanwhile has no name.
        let names = try threads(of: getpid()).compactMap {
          try? readText("/proc/self/task/\($0)/comm")
        }
        return names.count { $0 == "dormouse-idle\n" } <= 3 && !names.contains("test-short\n")
      })
  }
}
