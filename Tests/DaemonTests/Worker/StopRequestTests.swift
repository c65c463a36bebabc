import Glibc
import Lifecycle
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("The request to a worker to end") struct StopRequestTests {
  private let world: WorkerEndWorld
  private var ending: WorkerEnding { world.ending }
  private var processes: FakeWorkerProcesses { world.processes }
  private var timers: FakeTimers { world.timers }

  init() throws { world = try WorkerEndWorld() }

  @Test("Nothing wakes a worker that is asked to end; its stop signal is sent before it is woken")
  func asked() throws {
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

  /// Connects the worker to `DORMOUSE_WORKER_SOCKET`.
  private func connect() throws -> WorkerSocketPeer {
    let world = world.world
    var channels = WorkerChannels()
    channels.talk = try WorkerSocket(path: world.scratch.uniquePath("worker"))
    world.conversations.makeConversation(self.world.worker, over: channels)
    try self.world.worker.conversation?.listenToConnections()
    let path = try #require(self.world.worker.conversation?.workerSocketPath)
    let worker = try WorkerSocketPeer(path)
    try world.watches.serve()
    _ = try worker.hear()
    return worker
  }

  @Test(
    "A connected worker is notified of its end first, and gets the stop signal when it has answered"
  )
  func announced() throws {
    let worker = try connect()
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

  @Test("A stop command runs while the worker is awake, and the stop signal follows its end")
  func stopCommand() throws {
    world.worker.configuration.stopCommand = ["true"]
    ending.terminate()
    #expect(world.begun == ["wake"])
    #expect(
      try eventually {
        try world.world.loop.watches.serveOnce()
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

  @Test("A stop command is followed by the stop signal at half of the grace, and begins once")
  func slowStopCommand() {
    world.worker.configuration.stopCommand = ["sleep", "1000"]
    ending.terminate()
    timers.advance(by: world.worker.configuration.policy.terminate.grace / 2)
    #expect(world.begun == ["wake", "ask \(SIGTERM) and wake"])
    ending.terminate()
    #expect(world.lines.count { $0.hasPrefix("stop command: ") } == 1)
    #expect(world.begun.last == "ask \(SIGTERM) and wake" && world.begun.count == 3)
  }

  @Test func `An end by another signal isn't announced over the worker's socket`() throws {
    let worker = try connect()
    ending.terminate(by: SIGABRT)
    #expect(world.begun == ["ask \(SIGABRT) and wake"])
    #expect(try worker.hear().requests.isEmpty)
  }

  @Test("A worker whose memory can't be verified is ended by SIGKILL, because it must not run")
  func unverified() {
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
