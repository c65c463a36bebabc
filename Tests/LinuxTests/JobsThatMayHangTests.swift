import Synchronization
import TestSupport
import Testing

@testable import Linux

@Suite("Jobs that may hang") struct JobsThatMayHangTests {
  final class Counter: Sendable {
    private let value = Mutex(0)
    var count: Int { value.withLock { $0 } }
    func add() { value.withLock { $0 += 1 } }
  }

  @Test func `A job that hangs delays no job about another subject`() throws {
    let (jobs, gate, done) = (
      JobPool(name: "test", maxOrdinary: 256, endsAfter: .seconds(5)), ThreadGate(), Counter()
    )
    defer { gate.open() }
    for number in 0..<5 {
      #expect(
        jobs.submitIfIdle(about: "hung \(number)") {
          gate.pass()
          return {}
        })
    }
    for number in 0..<50 {
      #expect(jobs.submitIfIdle(about: "well \(number)") { { done.add() } })
    }
    #expect(try eventually { done.count == 50 })
  }

  @Test("A second job about a subject is refused while the first one hangs, and accepted after it")
  func oneForEachSubject() throws {
    let (jobs, gate, done) = (
      JobPool(name: "test", maxOrdinary: 256, endsAfter: .seconds(5)), ThreadGate(), Counter()
    )
    #expect(
      jobs.submitIfIdle(about: "disk") {
        gate.pass()
        return { done.add() }
      })
    for _ in 0..<100 { #expect(!jobs.submitIfIdle(about: "disk") { {} }) }
    gate.open()
    #expect(try eventually { done.count == 1 })
    // After the result has arrived, another job may be submitted at once.
    #expect(jobs.submitIfIdle(about: "disk") { { done.add() } })
    #expect(try eventually { done.count == 2 })
  }

  @Test func `If there are more jobs than threads, all jobs are done eventually`() throws {
    let (jobs, done) = (JobPool(name: "test", maxOrdinary: 2, endsAfter: .seconds(5)), Counter())
    for number in 0..<200 { #expect(jobs.submitIfIdle(about: "\(number)") { { done.add() } }) }
    #expect(try eventually { done.count == 200 })
  }

  @Test func `A job that is submitted when the idle thread ends is done`() throws {
    let idleTime = Duration.microseconds(200)
    let jobs = JobPool(name: "test", maxOrdinary: 256, endsAfter: idleTime)
    for number in 0..<1_000 {
      let done = Semaphore()
      #expect(jobs.submitIfIdle(about: "one") { { done.signal() } })
      try #require(done.wait(within: .seconds(60)), "job \(number)")
      // The next job is submitted about when the thread's idle time ends.
      let next = Deadline(in: idleTime + .microseconds(number % 100))
      while !next.hasPassed {}
    }
  }

  @Test func `A result without a waiting receiver is destroyed on the thread that made it`() {
    let result = LateResult<Int>()
    #expect(result.consume() == nil)
    #expect(result.set(7))
    #expect(result.consume() == 7)
    result.abandon()
    #expect(!result.set(8))
    #expect(result.consume() == nil)
  }
}
