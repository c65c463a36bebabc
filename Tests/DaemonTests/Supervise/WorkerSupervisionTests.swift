import Control
import Glibc
import Linux
import Policy
import Supervision
import Testing

@testable import Daemon
@testable import Lifecycle

@Suite("What a worker's transition sets off") struct WorkerSupervisionTests {
  private let world: AdapterWorld
  private let reloads: WorkerReloads
  private let supervision: WorkerSupervision
  private let id = WorkerID("web")

  init() throws {
    world = try AdapterWorld()
    reloads = world.reloads
    supervision = WorkerSupervision(
      workers: world.workers, restarts: world.restarts, starter: world.starter, reloads: reloads,
      liveness: world.senses.liveness, listening: world.listening)
  }

  private func transit(
    from old: WorkerState = .background, to new: WorkerState, _ cause: Cause
  ) {
    supervision.supervise(
      Transition(worker: id, from: old, to: new, cause: cause, at: world.timers.now))
  }

  private func probed(_ port: UInt16) -> Policy.Probe {
    Policy.Probe(.tcp(host: "127.0.0.1", port: port))
  }

  @Test func `A worker's end plans its restart, ends probes and answers clients`() throws {
    signal(SIGWINCH) { _ in }
    let worker = try world.add {
      $0.restart = RestartWorld.rules
      $0.liveness = probed(80)
      $0.reloadSignal = SIGWINCH
    }
    transit(from: .launching, to: .background, .becameReady)
    #expect(worker.liveness != nil)
    var responses: [ControlResponse] = []
    let request = ControlRequest(id: 7, verb: .reloadWorker, worker: "web")
    reloads.reloadWorker(ControlCall(request: request) { responses.append($0) })
    #expect(responses.isEmpty)
    world.driver.send(.exited(id, .exited(4)))
    transit(to: .terminated, RestartWorld.failure)
    #expect(worker.liveness == nil && world.restarts.histories[id]?.plan != nil)
    #expect(responses.count == 1 && responses[0].text.contains("exited with status 4"))
  }

  @Test func `A worker's stored descriptors are closed only if its end was requested`() throws {
    let worker = try world.add("web", .terminated) { $0.fdstore = 4 }
    let storing = DescriptorStoring(
      world.handle(worker), timers: world.timers, workers: world.workers
    ) { _ in
      { _ in }
    }
    worker.stored = storing
    storing.keep(
      .store([try EventCounter().descriptor], name: "state", isPolled: false))
    transit(to: .terminated, RestartWorld.failure)
    // The worker had ended already.
    transit(from: .terminated, to: .terminated, .requested(.stop))
    world.timers.advance(by: DescriptorStoring.removalDelay)
    #expect(storing.entriesForLaunch().count == 1)
    transit(to: .terminated, .requested(.stop))
    world.timers.advance(by: DescriptorStoring.removalDelay)
    #expect(storing.entriesForLaunch().isEmpty)
  }

  @Test func `The operator's stop ends a worker's wait for its dependencies`() throws {
    #expect(
      try answer { supervision.operatorRequested(.stop, id) }
        == "web was stopped before it was started")
  }

  @Test func `A worker that is no longer declared waits for no dependencies`() throws {
    #expect(
      try answer { supervision.forgetPlans(of: id) } == "web is no longer in the configuration")
    supervision.removeWorker(WorkerID("unknown"))
    #expect(world.workers.count == 2)
    supervision.removeWorker(id)
    #expect(world.workers[id] == nil && world.restarts.histories[id]?.exits == nil)
    // Events of a removed worker that come late are ignored.
    supervision.didChangeRestartRules(id)
    transit(to: .terminated, .requested(.stop))
  }

  /// The answer to a start that waits for another worker when the action happens.
  private func answer(to action: () -> Void) throws -> String? {
    try world.add("db", .terminated)
    try world.add("web", .terminated) { $0.dependsOn = [Dependency("db", .ready)] }
    var answers: [Answer] = []
    world.starter.start(id) { answers.append($0) }
    #expect(world.asked == ["restart db"] && answers.isEmpty)
    action()
    #expect(answers.count == 1)
    return answers.first?.text
  }

  @Test func `A new configuration applies to the probe and to the reading of traffic`() throws {
    let worker = try world.add { $0.liveness = probed(80) }
    worker.traffic = try TrafficMonitor(latches: nil, daemonSockets: [])
    supervision.didChangeRestartRules(id)
    #expect(worker.liveness?.probe == probed(80) && worker.traffic == nil)
    worker.configuration.liveness = probed(81)
    supervision.didChangeRestartRules(id)
    #expect(worker.liveness?.probe == probed(81))
  }
}
