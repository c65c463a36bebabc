import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("Jobs beside the event loop") struct LoopJobsTests {
  @Test(
    "Jobs return their value, or an error at their deadline, and a hung subject isn't tried again")
  func outcomes() throws {
    let loop = try EventLoop()
    let jobs = try LoopJobs(loop, JobPool(name: "test", maxOrdinary: 256, endsAfter: .seconds(5)))
    let gate = ThreadGate()
    defer { gate.open() }
    var outcomes: [String] = []
    func record(_ outcome: JobOutcome<Int>) {
      switch outcome {
      case .done(let value): outcomes.append("done \(value)")
      case .overdue: outcomes.append("overdue")
      case .busy: outcomes.append("busy")
      }
    }
    jobs.run(about: "well", within: .seconds(60)) {
      1
    } then: {
      record($0)
    }
    #expect(outcomes == [])
    try loop.turn { !outcomes.isEmpty }
    #expect(outcomes == ["done 1"])

    func hang() -> @Sendable () -> Int {
      {
        gate.pass()
        return 2
      }
    }
    jobs.run(about: "hung", within: .milliseconds(50), hang()) { record($0) }
    try loop.turn { outcomes.count == 2 }
    jobs.run(about: "hung", within: .seconds(60)) {
      3
    } then: {
      record($0)
    }
    try loop.turn { outcomes.count == 3 }
    jobs.run(about: "well", within: .seconds(60)) {
      4
    } then: {
      record($0)
    }
    try loop.turn { outcomes.count == 4 }
    #expect(outcomes == ["done 1", "overdue", "busy", "done 4"])
  }

  @Test func `A job may report values any number of times, until its sender is freed`() throws {
    let loop = try EventLoop()
    let back = try LoopReturn(loop)
    final class Heard { var numbers: [Int] = [] }
    weak var kept: Heard?
    try {
      let heard = Heard()
      kept = heard
      let report: @Sendable (Int) -> Void = back.relay { heard.numbers.append($0) }
      let thread = Thread.start(name: "test") { for number in 1...3 { report(number) } }
      #expect(thread)
      try loop.turn { heard.numbers.count == 3 }
      #expect(heard.numbers == [1, 2, 3])
    }()
    try loop.turn { kept == nil }
    #expect(kept == nil)
  }
}
