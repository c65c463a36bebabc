import Control
import Glibc
import Testing

@testable import Daemon

@Suite("What supervision knows of the daemon's workers") struct SupervisionAdapterTests {
  private let world: AdapterWorld
  private let supervisor: LivenessSupervisor

  init() throws {
    world = try AdapterWorld()
    supervisor = FakeQuestions.supervisor(
      world.timers, world.driver, world.workers, FakeQuestions.World())
  }

  // MARK: liveness

  private func liveness(_ worker: WorkerUnit) throws -> RunQuestions {
    supervisor.questions(to: worker, try #require(worker.process))
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
    var traffic: [Bool] = []
    host.readTraffic { traffic.append($0) }
    host.recordActivity()
    host.reportUnhealthy("it doesn't answer")
    host.didEndQuestion()
    #expect(traffic == [false] && !host.mayBeAsked && !host.watchesTraffic)
    #expect(world.notes.all == [])
  }
}

@Suite("How the daemon reaches registered wrappers") struct WrapperSocketsTests {
  private let world: AdapterWorld
  private let sockets: WrapperSockets

  init() throws {
    world = try AdapterWorld()
    sockets = WrapperSockets(
      services: world.services,
      control: ControlServer(
        path: world.scratch.path + "/control.sock", world.services.loop, world.log))
  }

  @Test func `A process that started after the wrapper registered isn't killed`() {
    // The pid is the test's own process. If it were killed, the test couldn't pass.
    #expect(sockets.kill(getpid(), startedBefore: .zero) == .hasEnded)
  }

  @Test func `A wrapper that has ended needs no kill`() {
    #expect(sockets.kill(1 << 22, startedBefore: EventLoop.now) == .hasEnded)
  }

  @Test func `A wrapper whose socket isn't there answers that it has ended, once`() throws {
    var responses: [ControlResponse.Result] = []
    sockets.ask(
      ControlRequest(id: 3, verb: .ps), at: world.scratch.path + "/none.sock", timeout: .seconds(60)
    ) { responses.append($0.result) }
    #expect(responses == [])
    try world.turn { !responses.isEmpty }
    #expect(responses.count == 1 && responses[0] != .done)
  }

  @Test("A connection that isn't there belongs to no process")
  func noClient() { #expect(sockets.process(of: ClientID(number: 7)) == nil) }
}
