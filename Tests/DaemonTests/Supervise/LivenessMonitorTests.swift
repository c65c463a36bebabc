import Policy
import Supervision
import Testing

@testable import Daemon

@Suite("A worker's liveness") struct LivenessMonitorTests {
  /// A run of a worker that answers as a test decides.
  private let questions: FakeQuestions
  private let monitor: LivenessMonitor
  /// The times of the probes, from the beginning of the test on.
  private let asked = Recorded<Duration>()
  private let looksWhileAsking = Recorded<Bool>()
  private var timers: FakeLoop { questions.timers }

  /// Probes every 10 s, and fails at the second failure in a row.
  init() throws {
    questions = try FakeQuestions()
    monitor = LivenessMonitor(
      Policy.Probe(
        .exec(["true"]), initialDelay: .seconds(5), period: .seconds(10), failureThreshold: 2),
      timers: questions.timers, question: questions.question)
    let (timers, began) = (questions.timers, questions.timers.now)
    questions.world.whenAsked = { [asked] in asked.all.append(timers.now - began) }
    questions.world.whenLooking = { [unowned questions, looksWhileAsking] in
      let question = questions.question
      if question.isAsking { looksWhileAsking.all.append(question.isDrainingTraffic) }
    }
  }

  private func launch() {
    questions.launch()
    monitor.runs(since: timers.now)
  }

  @Test func `Liveness is probed after the initial delay, and then every period`() throws {
    launch()
    for _ in 0..<100 {
      timers.advance(by: .milliseconds(500))
      if questions.isAnswerAwaited { questions.answer(.success) }
    }
    #expect(asked.all == [.seconds(5), .seconds(15), .seconds(25), .seconds(35), .seconds(45)])
    #expect(questions.complaints == [] && monitor.lastFailure == nil)
  }

  @Test func `A worker that fails enough probes in a row is reported with the reason`() throws {
    launch()
    for outcome in [
      ProbeRunner.Outcome.failure("exit code 1"), .success, .failure("exit code 2"),
      .failure("exit code 3"),
    ] {
      timers.advance(by: .seconds(10))
      questions.answer(outcome)
      timers.advance(by: .milliseconds(200))
      if outcome == .failure("exit code 2") { #expect(questions.complaints == []) }
    }
    #expect(questions.complaints == ["liveness probe failed 2 times in a row: exit code 3"])
    #expect(monitor.lastFailure == "exit code 3")
  }

  @Test func `A probe that the daemon can't ask for lack of a resource doesn't count`() throws {
    launch()
    for outcome in [
      ProbeRunner.Outcome.failure("exit code 1"), .unasked("no descriptor"), .unasked("no process"),
    ] {
      timers.advance(by: .seconds(10))
      questions.answer(outcome)
      timers.advance(by: .milliseconds(200))
    }
    #expect(questions.complaints == [] && monitor.lastFailure == "exit code 1")
    timers.advance(by: .seconds(10))
    questions.answer(.failure("exit code 2"))
    timers.advance(by: .milliseconds(200))
    #expect(questions.complaints == ["liveness probe failed 2 times in a row: exit code 2"])
  }

  @Test func `A sleeping worker isn't probed, and earlier failures don't count later`() throws {
    launch()
    timers.advance(by: .seconds(5))
    questions.answer(.failure("exit code 1"))
    timers.advance(by: .milliseconds(200))
    monitor.pause()
    monitor.stopAsking()
    timers.advance(by: .seconds(600))
    #expect(asked.all == [.seconds(5)])
    launch()
    timers.advance(by: .seconds(6))
    questions.answer(.failure("exit code 1"))
    timers.advance(by: .milliseconds(200))
    #expect(asked.all.count == 2 && questions.complaints == [])
  }

  @Test func `A worker that still fails its probes after a sleep is reported again`() throws {
    for round in 1...2 {
      launch()
      for _ in 0..<2 {
        for _ in 0..<30 where !questions.isAnswerAwaited { timers.advance(by: .seconds(1)) }
        questions.answer(.failure("exit code 1"))
        timers.advance(by: .milliseconds(200))
      }
      #expect(questions.complaints.count == round)
      monitor.pause()
      monitor.stopAsking()
    }
  }

  @Test func `A worker falls asleep only when its probe's connection is closed`() throws {
    launch()
    timers.advance(by: .seconds(5))
    monitor.pause()
    try questions.setMayBeAsked(false)
    #expect(questions.question.isAsking)
    questions.answer(.success)
    #expect(questions.question.isAsking && questions.ended == 0)
    timers.advance(by: QuietQuestion.closingTime)
    #expect(!questions.question.isAsking && questions.ended == 1)
    // Nothing is scheduled while the worker sleeps.
    #expect(timers.pending == [])
  }

  @Test func `A probe's traffic doesn't count as activity, and earlier traffic does`() throws {
    try questions.watchTraffic()
    questions.world.hasTraffic = true
    launch()
    timers.advance(by: .seconds(5))
    #expect(questions.active == 1 && asked.all.count == 1)
    questions.world.hasTraffic = true
    questions.answer(.success)
    timers.advance(by: QuietQuestion.closingTime)
    // The reading that consumes the probe's traffic is made during the question.
    #expect(questions.active == 1 && looksWhileAsking.all == [true])
    #expect(!questions.world.hasTraffic && questions.ended == 1)
  }

  @Test func `A run that is over isn't probed, and a late answer changes nothing`() throws {
    launch()
    timers.advance(by: .seconds(5))
    monitor.end()
    #expect(questions.world.dropped == 1 && !questions.question.isAsking)
    questions.answer(.failure("late"))
    launch()
    timers.advance(by: .seconds(100))
    #expect(asked.all.count == 1 && questions.complaints == [] && timers.pending == [])
  }

  @Test func `A probe whose answer is lost is repeated, and doesn't count`() throws {
    launch()
    timers.advance(by: .seconds(5))
    let late = questions.forgetAnswer()
    timers.advance(by: .seconds(30))
    #expect(asked.all.count == 2 && questions.world.dropped == 1 && questions.ended == 1)
    #expect(questions.complaints == [] && monitor.lastFailure == nil)
    // A late answer isn't the answer to the question that is under way now.
    late?(.failure("late"))
    timers.advance(by: .milliseconds(200))
    #expect(questions.question.isAsking && monitor.lastFailure == nil)
  }

  @Test func `A worker is probed although the readings of its traffic are lost`() throws {
    try questions.watchTraffic()
    questions.world.losesLooks = true
    launch()
    timers.advance(by: .seconds(5) + QuietQuestion.timeout)
    #expect(asked.all.count == 1)
    questions.answer(.success)
    timers.advance(by: QuietQuestion.closingTime + QuietQuestion.timeout)
    #expect(questions.ended == 1 && !questions.question.isAsking)
  }

  @Test func `A worker isn't probed while an operation on it is under way`() throws {
    try questions.setMayBeAsked(false)
    launch()
    timers.advance(by: .seconds(60))
    #expect(asked.all == [])
    // The worker continues to run, which is no transition that the monitor would get.
    try questions.setMayBeAsked(true)
    timers.advance(by: .seconds(10))
    #expect(asked.all == [.seconds(65)])
  }
}
