import Policy
import Supervision
import Testing

@testable import Daemon

@Suite("A worker's liveness") struct LivenessMonitorTests {
  /// A run of a worker that answers as a test decides.
  private final class World {
    let questions: FakeQuestions
    private(set) var asked: [Duration] = []
    private(set) var looksWhileAsking: [Bool] = []
    private(set) var monitor: LivenessMonitor?

    var timers: FakeLoop { questions.timers }
    var dropped: Int { questions.world.dropped }
    var ended: Int { questions.ended }
    var active: Int { questions.active }
    var complaints: [String] { questions.complaints }
    var isAnswerAwaited: Bool { questions.isAnswerAwaited }

    /// Probes every 10 s, and fails at the second failure in a row.
    init() throws {
      questions = try FakeQuestions()
      monitor = LivenessMonitor(
        Policy.Probe(
          .exec(["true"]), initialDelay: .seconds(5), period: .seconds(10), failureThreshold: 2),
        timers: questions.timers, questions: questions.run)
      let began = timers.now
      questions.world.whenAsked = { [unowned self] in asked.append(timers.now - began) }
      questions.world.whenLooking = { [unowned self] in
        if monitor?.isAsking == true { looksWhileAsking.append(monitor?.isDrainingTraffic == true) }
      }
    }

    func launch() {
      questions.launch()
      monitor?.runs(since: timers.now)
    }
    func answer(_ outcome: ProbeRunner.Outcome) { questions.answer(outcome) }
  }

  private let world: World

  init() throws { world = try World() }

  @Test func `Liveness is probed after the initial delay, and then every period`() throws {
    world.launch()
    for _ in 0..<100 {
      world.timers.advance(by: .milliseconds(500))
      if world.isAnswerAwaited { world.answer(.success) }
    }
    #expect(world.asked == [.seconds(5), .seconds(15), .seconds(25), .seconds(35), .seconds(45)])
    #expect(world.complaints == [] && world.monitor?.lastFailure == nil)
  }

  @Test func `A worker that fails enough probes in a row is reported with the reason`() throws {
    world.launch()
    for outcome in [
      ProbeRunner.Outcome.failure("exit code 1"), .success, .failure("exit code 2"),
      .failure("exit code 3"),
    ] {
      world.timers.advance(by: .seconds(10))
      world.answer(outcome)
      world.timers.advance(by: .milliseconds(200))
      if outcome == .failure("exit code 2") { #expect(world.complaints == []) }
    }
    #expect(world.complaints == ["liveness probe failed 2 times in a row: exit code 3"])
    #expect(world.monitor?.lastFailure == "exit code 3")
  }

  @Test func `A sleeping worker isn't probed, and earlier failures don't count later`() throws {
    world.launch()
    world.timers.advance(by: .seconds(5))
    world.answer(.failure("exit code 1"))
    world.timers.advance(by: .milliseconds(200))
    world.monitor?.pause()
    world.monitor?.stopAsking()
    world.timers.advance(by: .seconds(600))
    #expect(world.asked == [.seconds(5)])
    world.launch()
    world.timers.advance(by: .seconds(6))
    world.answer(.failure("exit code 1"))
    world.timers.advance(by: .milliseconds(200))
    #expect(world.asked.count == 2 && world.complaints == [])
  }

  @Test func `A worker that still fails its probes after a sleep is reported again`() throws {
    for round in 1...2 {
      world.launch()
      for _ in 0..<2 {
        for _ in 0..<30 where !world.isAnswerAwaited { world.timers.advance(by: .seconds(1)) }
        world.answer(.failure("exit code 1"))
        world.timers.advance(by: .milliseconds(200))
      }
      #expect(world.complaints.count == round)
      world.monitor?.pause()
      world.monitor?.stopAsking()
    }
  }

  @Test func `A worker falls asleep only when its probe's connection is closed`() throws {
    world.launch()
    world.timers.advance(by: .seconds(5))
    world.monitor?.pause()
    try world.questions.setMayBeAsked(false)
    #expect(world.monitor?.isAsking == true)
    world.answer(.success)
    #expect(world.monitor?.isAsking == true && world.ended == 0)
    world.timers.advance(by: LivenessMonitor.closingTime)
    #expect(world.monitor?.isAsking == false && world.ended == 1)
    // Nothing is scheduled while the worker sleeps.
    #expect(world.timers.pending == [])
  }

  @Test func `A probe's traffic doesn't count as activity, and earlier traffic does`() throws {
    try world.questions.watchTraffic()
    world.questions.world.hasTraffic = true
    world.launch()
    world.timers.advance(by: .seconds(5))
    #expect(world.active == 1 && world.asked.count == 1)
    world.questions.world.hasTraffic = true
    world.answer(.success)
    world.timers.advance(by: LivenessMonitor.closingTime)
    // The reading that consumes the probe's traffic is made during the question.
    #expect(world.active == 1 && world.looksWhileAsking == [true])
    #expect(!world.questions.world.hasTraffic && world.ended == 1)
  }

  @Test func `A run that is over isn't probed, and a late answer changes nothing`() throws {
    world.launch()
    world.timers.advance(by: .seconds(5))
    world.monitor?.end()
    #expect(world.dropped == 1 && world.monitor?.isAsking == false)
    world.answer(.failure("late"))
    world.launch()
    world.timers.advance(by: .seconds(100))
    #expect(world.asked.count == 1 && world.complaints == [] && world.timers.pending == [])
  }

  @Test func `A probe whose answer is lost is repeated, and doesn't count`() throws {
    world.launch()
    world.timers.advance(by: .seconds(5))
    let late = world.questions.forgetAnswer()
    world.timers.advance(by: .seconds(30))
    #expect(world.asked.count == 2 && world.dropped == 1 && world.ended == 1)
    #expect(world.complaints == [] && world.monitor?.lastFailure == nil)
    // A late answer isn't the answer to the question that is under way now.
    late?(.failure("late"))
    world.timers.advance(by: .milliseconds(200))
    #expect(world.monitor?.isAsking == true && world.monitor?.lastFailure == nil)
  }

  @Test func `A worker is probed although the readings of its traffic are lost`() throws {
    try world.questions.watchTraffic()
    world.questions.world.losesLooks = true
    world.launch()
    world.timers.advance(by: .seconds(5) + LivenessMonitor.timeout)
    #expect(world.asked.count == 1)
    world.answer(.success)
    world.timers.advance(by: LivenessMonitor.closingTime + LivenessMonitor.timeout)
    #expect(world.ended == 1 && world.monitor?.isAsking == false)
  }

  @Test func `A worker isn't probed while an operation on it is under way`() throws {
    try world.questions.setMayBeAsked(false)
    world.launch()
    world.timers.advance(by: .seconds(60))
    #expect(world.asked == [])
    // The worker continues to run, which is no transition that the monitor would get.
    try world.questions.setMayBeAsked(true)
    world.timers.advance(by: .seconds(10))
    #expect(world.asked == [.seconds(65)])
  }
}
