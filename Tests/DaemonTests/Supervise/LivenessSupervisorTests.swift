import Glibc
import Policy
import Testing

@testable import Daemon
@testable import Lifecycle

@Suite("The supervisor of liveness probes") struct LivenessSupervisorTests {
  private let world = SenseWorld()
  private let watches = FakeLoop()
  private let probes: ProbeAsker
  private let supervisor: LivenessSupervisor
  /// It accepts connections and never answers.
  private let server: TestListener

  init() throws {
    probes = ProbeAsker(world.timers, watches)
    supervisor = FakeQuestions.supervisor(
      world.timers, world.driver, world.workers, FakeQuestions.World(), probes: probes)
    server = try TestListener()
  }

  private func probe(threshold: Int = 1) -> Probe {
    Probe(
      .http(Probe.HTTPRequest(port: server.port)), period: .seconds(10),
      timeout: .seconds(2), failureThreshold: threshold)
  }

  private func add(_ state: WorkerState = .background) throws -> WorkerUnit {
    let probe = probe()
    let worker = try world.add("web", state) { $0.liveness = probe }
    supervisor.followLiveness(of: worker, nil)
    return worker
  }

  private func transit(_ worker: WorkerUnit, _ from: WorkerState, _ to: WorkerState) {
    supervisor.followLiveness(
      of: worker,
      Transition(worker: worker.id, from: from, to: to, cause: .graceOver(), at: world.timers.now))
  }

  /// Waits until a question is under way.
  private func ask(_ worker: WorkerUnit) {
    for _ in 0..<30 where !worker.isAsked { world.timers.advance(by: .seconds(1)) }
    #expect(worker.isAsked)
  }

  @Test func `A worker that doesn't answer its probe is reported with the reason`() throws {
    let worker = try add()
    ask(worker)
    world.timers.advance(by: .seconds(2))
    world.timers.advance(by: QuietQuestion.closingTime)
    #expect(
      world.drainEvents() == [
        .unhealthy(worker.id, "liveness probe failed: no answer within 2 s")
      ])
  }

  @Test func `A worker that has no probe, no process or that sleeps isn't probed`() throws {
    let without = try world.add("plain")
    supervisor.followLiveness(of: without, nil)
    #expect(without.liveness == nil)
    #expect(try add(.suspended).liveness == nil)
    #expect(world.timers.pending.isEmpty)
  }

  @Test func `An action that waits for a probe is dropped if the worker stays awake`() throws {
    let worker = try add()
    ask(worker)
    var done = 0
    worker.afterQuestions(world.driver) { done += 1 }
    #expect(done == 0)
    world.timers.advance(by: .seconds(2))
    world.timers.advance(by: QuietQuestion.closingTime)
    #expect(!worker.isAsked && done == 0 && worker.actionAfterQuestions == nil)
  }

  @Test func `A worker falls asleep when it has answered its probe`() throws {
    let probe = probe(threshold: 3)
    let worker = try world.add("web") { $0.liveness = probe }
    supervisor.followLiveness(of: worker, nil)
    ask(worker)
    world.driver.request(.suspend, worker.id) { _ in }
    world.driver.send(.fileLocks(worker.id, held: 0))
    guard world.driver.state.state(of: worker.id) == .suspending else {
      Issue.record("\(String(describing: world.driver.state.state(of: worker.id)))")
      return
    }
    transit(worker, .background, .suspending)
    var done = 0
    worker.afterQuestions(world.driver) { done += 1 }
    #expect(done == 0)
    // A second has passed since the question.
    world.timers.advance(by: .seconds(1))
    #expect(done == 0, "the worker hasn't closed its connection yet")
    world.timers.advance(by: QuietQuestion.closingTime)
    #expect(done == 1 && worker.actionAfterQuestions == nil)
  }

  @Test func `The end of a run drops its probe and what waits for the answer`() throws {
    let worker = try add()
    ask(worker)
    var done = 0
    worker.afterQuestions(world.driver) { done += 1 }
    transit(worker, .background, .terminating)
    #expect(worker.liveness == nil && worker.actionAfterQuestions == nil && !worker.isAsked)
    world.timers.advance(by: .seconds(100))
    #expect(done == 0 && world.timers.pending.isEmpty && watches.active == 0)
    #expect(world.drainEvents().isEmpty)
  }

  @Test func `A probe that a reload has changed begins again with the new settings`() throws {
    let worker = try add()
    let before = worker.liveness
    supervisor.followLiveness(of: worker, nil)
    #expect(worker.liveness === before)
    worker.configuration.liveness?.period = .seconds(20)
    supervisor.followLiveness(of: worker, nil)
    #expect(worker.liveness !== before && worker.liveness?.probe.period == .seconds(20))
    #expect(world.timers.pending.count == 1)
  }
}

@Suite("Questions to one run of a worker") struct QuietQuestionTests {
  private let world: AdapterWorld
  private let supervisor: LivenessSupervisor

  init() throws {
    world = try AdapterWorld()
    supervisor = FakeQuestions.supervisor(
      world.timers, world.driver, world.workers, FakeQuestions.World())
  }

  private func liveness(_ worker: WorkerUnit) throws -> QuietQuestion {
    QuietQuestion(to: worker, try #require(worker.process), by: supervisor)
  }

  @Test func `A worker is asked whether it is well only while this run of it runs`() throws {
    #expect(try !liveness(world.add("asleep", .suspended)).mayBeAsked, "it would be woken")
    let worker = try world.add()
    let host = try liveness(worker)
    #expect(host.mayBeAsked)
    world.driver.send(.exited(worker.id, .exited(0)))
    #expect(!host.mayBeAsked, "the engine takes it for ended")
    world.driver.send(.adopted(worker.id, worker.profile, .background))
    #expect(host.mayBeAsked)
    world.ends.rootDidEnd(worker)
    #expect(!host.mayBeAsked, "its root process has ended")
    worker.endRun()
    worker.process = try .forTest()
    #expect(!host.mayBeAsked, "this is another run")
  }

  @Test func `What a probe finds of a worker that was freed concerns nothing`() throws {
    var worker: WorkerUnit? = try world.add()
    let host = try liveness(try #require(worker))
    world.workers.removeAll()
    worker = nil
    var isRead = false
    host.readEarlierTraffic { isRead = true }
    host.reportUnhealthy("it doesn't answer")
    host.cancel()
    #expect(isRead && !host.mayBeAsked)
    #expect(world.notes.all == [])
  }
}
