import Testing

@testable import Policy

@Suite struct `Restarts` {
  private static func at(_ seconds: Int64) -> Instant {
    Instant(nanoseconds: seconds * 1_000_000_000)
  }

  @Test func `Restarts wait longer each time, up to the longest wait`() {
    let backoff = Backoff(initial: .seconds(1), max: .seconds(10), factor: 3)
    #expect((0..<5).map(backoff.delay(afterRestarts:)) == [1, 3, 9, 10, 10].map { .seconds($0) })
    #expect(backoff.delay(afterRestarts: .max) == .seconds(10))
    #expect(backoff.delay(afterRestarts: -1) == .seconds(1))
    let steady = Backoff(initial: .milliseconds(200), max: .seconds(10), factor: 1)
    #expect(steady.delay(afterRestarts: 1_000_000_000) == .milliseconds(200))
    let none = Backoff(initial: .zero, max: .zero, factor: 2)
    #expect(none.delay(afterRestarts: 5) == .zero)
  }

  static let ends: [(RestartRules.Condition, Bool, Bool)] = [
    (.never, true, false), (.never, false, false), (.onFailure, true, false),
    (.afterShortage, true, false), (.afterShortage, false, false), (.onFailure, false, true),
    (.always, true, true), (.unlessStopped, false, true),
  ]

  @Test(arguments: ends)
  func `A restart depends on how the worker ended`(
    condition: RestartRules.Condition, succeeded: Bool, restarts: Bool
  ) {
    var history = RestartHistory()
    let decision = history.ended(
      succeeded: succeeded, ran: .seconds(1), rules: RestartRules(condition), at: .zero)
    #expect(decision == (restarts ? .restart(after: .seconds(1)) : .stay))
  }

  @Test
  func `Restarts are given up after a number of them within the window, not over a longer time`() {
    let rules = RestartRules(
      .always, giveUp: RestartRules.GiveUp(restarts: 2, window: .seconds(60)))
    var history = RestartHistory()
    func end(at seconds: Int64) -> RestartHistory.Decision {
      history.ended(succeeded: false, ran: .zero, rules: rules, at: Self.at(seconds))
    }
    #expect(end(at: 0) == .restart(after: .seconds(1)))
    #expect(end(at: 10) == .restart(after: .seconds(2)))
    #expect(end(at: 20) == .giveUp(restarts: 2, window: .seconds(60)))
    // The first restart is outside the window by now.
    #expect(end(at: 65) == .restart(after: .seconds(4)))
    history.reset()
    #expect(end(at: 66) == .restart(after: .seconds(1)))
  }

  @Test func `Delays start over after a good run, and restarts never end without a limit`() {
    let rules = RestartRules(
      .always, backoff: Backoff(initial: .seconds(1), max: .seconds(8)), giveUp: nil)
    var history = RestartHistory()
    var delays: [RestartHistory.Decision] = []
    for second in 0..<1_000 {
      delays.append(
        history.ended(succeeded: true, ran: .zero, rules: rules, at: Self.at(Int64(second))))
    }
    #expect(delays.last == .restart(after: .seconds(8)))
    #expect(history.restarts.count <= 1)
    #expect(
      history.ended(succeeded: true, ran: .seconds(9), rules: rules, at: Self.at(2_000))
        == .restart(after: .seconds(1)))
  }
}

@Suite struct `Probes` {
  private static let probe = Probe(
    .tcp(host: "127.0.0.1", port: 80), initialDelay: .seconds(5), period: .seconds(10),
    successThreshold: 2, failureThreshold: 3)

  @Test func `A readiness probe passes after a number of successes in a row`() {
    var state = ProbeState(Self.probe, for: .readiness)
    #expect(state.verdict == .failing)
    #expect([true, false, true].map { state.record(success: $0) } == [nil, nil, nil])
    #expect(state.record(success: true) == .passing)
    #expect([false, false, true].map { state.record(success: $0) } == [nil, nil, nil])
    #expect([false, false, false].map { state.record(success: $0) } == [nil, nil, .failing])
    #expect(state.verdict == .failing)
  }

  @Test func `A liveness probe fails after a number of failures in a row`() {
    var state = ProbeState(Self.probe, for: .liveness)
    #expect(state.verdict == .passing)
    #expect([false, false, true].map { state.record(success: $0) } == [nil, nil, nil])
    #expect([false, false, false].map { state.record(success: $0) } == [nil, nil, .failing])
  }

  @Test func `Probes run at their period, one at a time`() {
    let state = ProbeState(Self.probe, for: .readiness)
    let second = { Instant(nanoseconds: $0 * 1_000_000_000) }
    #expect(state.firstQuestion(after: second(1)) == second(6))
    #expect(state.nextQuestion(after: second(6), answeredAt: second(6)) == second(16))
    #expect(state.nextQuestion(after: second(6), answeredAt: second(16)) == second(16))
    #expect(state.nextQuestion(after: second(6), answeredAt: second(17)) == second(26))
  }
}
