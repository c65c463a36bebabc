import Glibc
import Policy
import Testing

@testable import Daemon
@testable import Lifecycle

@Suite("The engine's directives as the daemon carries them out") struct DirectiveExecutionTests {
  private let world: AdapterWorld
  private let program = TestProgram()
  private let launcher: LaunchWorld
  private let execution: DirectiveExecution

  init() throws {
    world = try AdapterWorld()
    launcher = LaunchWorld()
    execution = DirectiveExecution(
      services: world.services, launcher: launcher.launcher, sheds: world.sheds,
      conversations: world.conversations, senses: world.senses, sleeps: world.sleeps,
      jetsam: world.jetsam, pressure: world.pressure,
      ending: world.ending, externals: world.externals, program: program)
  }

  private func transition(
    _ name: String = "web", from: WorkerState = .background, to: WorkerState,
    _ cause: Cause = .requested(.stop)
  ) -> Directive {
    .transition(
      Transition(
        worker: WorkerID(name), from: from, to: to, cause: cause, at: world.timers.now))
  }

  /// Adds a worker with a sleep whose operations don't end.
  private func addSleeper(_ state: WorkerState) throws -> (WorkerUnit, FakeMemory) {
    let worker = try world.add("web", state)
    let memory = FakeMemory()
    world.makeSleeps(over: memory).makeSleep(for: worker)
    return (worker, memory)
  }

  // MARK: sleep

  @Test func `Directives about sleep reach the worker's sleep, one operation at a time`() throws {
    let (worker, memory) = try addSleeper(.suspending)
    execution.execute(.suspend(worker.id))
    #expect(memory.asked == ["suspend"])
    for directive in [Directive.suspend, Directive.hibernate, Directive.resume] {
      execution.execute(directive(WorkerID("unknown")))
    }
    #expect(memory.asked == ["suspend"] && world.notes.all == [])
  }

  @Test func `A daemon that leaves suspends no workers that only it would keep asleep`() throws {
    let (worker, memory) = try addSleeper(.suspending)
    world.ending.leave()
    execution.execute(.suspend(worker.id))
    #expect(memory.asked == [])
    #expect(
      world.notes.all == [
        .suspendFailed(
          worker.id, "the daemon is ending, and nothing else would keep it asleep")
      ])
  }

  @Test func `A worker without a process has ended, when the engine asks for its state`() throws {
    try world.add("web", .terminated)
    for name in ["web", "unknown"] {
      execution.execute(.inspect(WorkerID(name)))
      #expect(world.notes.all.last == .exited(WorkerID(name), .unknown))
    }
    world.notes.forget()
    let (worker, memory) = try addSleeper(.resuming)
    execution.execute(.inspect(worker.id))
    #expect(memory.asked == ["inspect"] && world.notes.all == [])
  }

  // MARK: ends

  @Test func `Requests to end, to abort and to kill a worker are different operations`() throws {
    let worker = try world.add()
    execution.execute(.abort(worker.id))
    #expect(world.workerProcesses.begun == ["ask \(SIGABRT) and wake"])
    execution.execute(.kill(worker.id))
    #expect(world.workerProcesses.begun.last == "kill")
    execution.execute(.terminate(WorkerID("unknown")))
  }

  // MARK: outcomes

  @Test func `Each directive that the engine waits for has an outcome in any case`() throws {
    let id = WorkerID("unknown")
    execution.execute(.finishShed(id))
    execution.execute(.purge(id))
    execution.execute(.inspect(id))
    #expect(
      world.notes.all == [
        .shedFinished(id, before: .zero, after: .zero),
        .purgeFailed(id, "it offers no purgeable memory"), .exited(id, .unknown),
      ])
  }

  @Test func `Directives about a wrapped worker reach no component of the daemon`() throws {
    world.wrap("tool", mayBeTerminated: true)
    execution.execute(.inspect(WorkerID("tool")))
    execution.execute(.kill(WorkerID("tool")))
    #expect(!world.notes.all.contains(.exited(WorkerID("tool"), .unknown)))
    #expect(world.wrapped.killed.map(\.pid) == [77])
  }

  // MARK: records and log

  @Test func `A worker's new state is logged, recorded, and reaches supervision`() throws {
    let worker = try world.add {
      $0.liveness = Policy.Probe(.tcp(host: "127.0.0.1", port: 80))
    }
    world.senses.liveness.followLiveness(of: worker, nil)
    try #require(worker.liveness != nil)
    execution.execute(transition(to: .terminating))
    world.services.records.drain()
    #expect(try world.services.records.store.load("web").state == "terminating")
    #expect(worker.liveness == nil, "it isn't asked any more")
    #expect(world.logged.contains("web: background → terminating: "))
    #expect(program.changes == [.terminating] && worker.process != nil)
  }

  @Test func `A state of a worker that the daemon doesn't have is only logged`() throws {
    execution.execute(transition("unknown", to: .terminated))
    #expect(world.logged.contains("unknown: background → terminated: "))
    #expect(world.notes.all == [])
    world.services.records.drain()
    #expect(!world.services.records.store.contains("unknown"))
  }

  @Test func `Only a termination for memory records the host's memory for its report`() throws {
    try world.add()
    execution.execute(transition(to: .terminating))
    let report = JetsamReport(
      at: .zero, level: .critical, why: "pressure", budget: .zero, availableBefore: .zero,
      availableAfter: .zero, largest: nil, entries: [])
    execution.execute(.report(report))
    execution.execute(transition(to: .terminating, .pressure(.critical)))
    execution.execute(.report(report))
    var hosts: [Bool] = []
    for id in world.jetsam.ids.sorted() { world.jetsam.load(id) { hosts.append($0?.host != nil) } }
    try world.turn { hosts.count == 2 }
    #expect(hosts == [false, true])
  }

  @Test func `Pressure is logged when it changes, and restarts workers when it is normal`() throws {
    let worker = try world.add("web", .terminated) { $0.restart = RestartWorld.rules }
    world.driver.send(.pressureSet(.critical, for: .seconds(1)))
    world.reportEnd(worker, .pressure(.critical))
    execution.execute(.pressureChanged(from: .normal, to: .critical, why: "no memory"))
    execution.execute(.pressureChanged(from: .critical, to: .warning, why: "some memory"))
    world.timers.advance(by: .seconds(2))
    #expect(world.asked == [])
    for _ in 0..<2 {
      world.driver.passDeadlines()
      world.timers.advance(by: .seconds(10))
    }
    try #require(world.driver.state.pressure == .normal)
    execution.execute(.pressureChanged(from: .warning, to: .normal, why: "memory"))
    #expect(world.asked == [])
    world.timers.advance(by: .seconds(1))
    #expect(world.asked == ["restart web"])
    #expect(world.logged.contains("pressure normal → critical: no memory"))
  }

  @Test func `Directives that only report something change nothing`() throws {
    let worker = try world.add()
    execution.execute(.watchdogMissed(worker.id, "it gave no sign for 3 s"))
    execution.execute(.wouldHave(worker.id, "be suspended"))
    execution.execute(.answer(1, Answer(.done, "")))
    execution.execute(.expireTask(worker.id, task: "upload"))
    #expect(world.logged.contains("web: it gave no sign for 3 s"))
    #expect(world.logged.contains("web: shadow mode: be suspended"))
    #expect(world.notes.all == [])
  }

  @Test func `The directive to launch a worker reaches the launcher`() {
    execution.execute(.launch(launcher.id))
    #expect(launcher.launches.count == 1)
  }
}
