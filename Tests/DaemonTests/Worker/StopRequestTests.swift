import Glibc
import TestSupport
import Testing

@testable import Daemon

@Suite("The request to a worker to end") struct StopRequestTests {
  private let world: WorkerEndWorld
  private var ending: WorkerEnding { world.ending }
  private var processes: FakeWorkerProcesses { world.processes }
  private var timers: FakeLoop { world.timers }

  init() throws { world = try WorkerEndWorld() }

  @Test func `A worker that is asked to end isn't watched, and gets its signal first`() throws {
    world.worker.configuration.stopSignal = SIGINT
    let watch = try #require(world.worker.wakeWatch)
    watch.listen(at: .success(try FakeInputs()))
    var isWatching: [Bool] = []
    processes.whenAsked = { isWatching.append(watch.isWatching) }
    #expect(watch.isWatching)
    ending.terminate()
    #expect(world.begun == ["ask \(SIGINT) and wake"] && isWatching == [false])
    #expect(!ending.hasExited)
  }

  @Test func `A connected worker gets the stop signal when it has answered`() throws {
    let worker = try world.world.connect(world.worker)
    _ = try worker.hear()
    ending.terminate()
    #expect(world.begun == ["wake"])
    let asked = try #require(try worker.hear().requests.first)
    guard case .willTerminate = asked.request else {
      Issue.record("\(asked)")
      return
    }
    try worker.say(.done(id: asked.id))
    try world.world.watches.serve()
    #expect(world.begun.last == "ask \(SIGTERM)")
  }

  @Test func `A worker that doesn't answer after its stop command has time for its stop signal`()
    throws
  {
    let worker = try world.world.connect(world.worker)
    _ = try worker.hear()
    world.worker.configuration.stopCommand = ["sleep", "1000"]
    ending.terminate()
    let grace = world.worker.configuration.policy.terminate.grace
    timers.advance(by: grace / 2)
    #expect(try worker.hear().requests.count == 1)
    #expect(world.begun == ["wake", "wake"])
    timers.advance(by: grace / 4)
    #expect(world.begun.last == "ask \(SIGTERM)", "a quarter of the grace is left")
  }

  @Test func `A stop command runs while the worker is awake, before the stop signal`() throws {
    world.worker.configuration.stopCommand = ["true"]
    ending.terminate()
    #expect(world.begun == ["wake"])
    #expect(
      try eventually {
        try world.world.loop.serveOnce()
        return world.begun.count == 2
      })
    #expect(world.begun.last == "ask \(SIGTERM) and wake")
  }

  @Test func `A stop command that outlives its worker is followed by no signal`() {
    world.worker.configuration.stopCommand = ["sleep", "1000"]
    ending.terminate()
    world.endRoot()
    let begun = world.begun
    timers.advance(by: .seconds(10))
    #expect(world.begun == begun)
    #expect(world.lines.contains { $0.contains("its stop command has not ended within") })
  }

  @Test func `A stop command begins once, and has half of the grace before the stop signal`() {
    world.worker.configuration.stopCommand = ["sleep", "1000"]
    ending.terminate()
    timers.advance(by: world.worker.configuration.policy.terminate.grace / 2)
    #expect(world.begun == ["wake", "ask \(SIGTERM) and wake"])
    ending.terminate()
    #expect(world.lines.count { $0.hasPrefix("stop command: ") } == 1)
    #expect(world.begun.last == "ask \(SIGTERM) and wake" && world.begun.count == 3)
  }

  @Test func `An end by another signal isn't announced over the worker's socket`() throws {
    let worker = try world.world.connect(world.worker)
    _ = try worker.hear()
    ending.terminate(by: SIGABRT)
    #expect(world.begun == ["ask \(SIGABRT) and wake"])
    #expect(try worker.hear().requests.isEmpty)
  }

  @Test func `A worker whose memory can't be verified is ended by SIGKILL: it mustn't run`() {
    world.worker.sleep?.killUnverified()
    ending.terminate()
    #expect(world.begun == ["kill", "kill"] && ending.isKilled)
  }

  @Test func `A worker's end continues when the worker couldn't be woken for it`() {
    ending.terminate()
    processes.woken.first?("a thread doesn't go on")
    #expect(world.lines == ["can't be woken before its end: a thread doesn't go on"])
    ending.rootDidEnd()
    processes.succeed()
    #expect(world.gone.count == 1)
  }

  @Test func `No stop signal is sent when the root process has ended`() {
    ending.rootDidEnd()
    ending.terminate()
    #expect(world.begun == ["scan"])
  }
}
