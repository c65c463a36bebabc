import Control
import Glibc
import Lifecycle
import Linux
import Policy
import Testing

@testable import Daemon

@Suite("What a worker reports of itself") struct SelfReportsTests {
  private let world: ConversationWorld
  private var id: WorkerID { world.id }

  init() throws { world = try ConversationWorld() }

  @Test func `Readiness, tasks, holds and a status have one effect over both channels`() throws {
    let conversation = try world.begin()
    let worker = try world.connect(conversation)
    try worker.say(
      .hello(version: 1), .ready, .beginTask(name: "index", limitSeconds: 30),
      .endTask(name: "index"), .hold(true), .hold(false), .status("reads"))
    try world.watches.serve()
    let expected: [Event] = [
      .taskBegan(id, task: "index", limit: .seconds(30)), .taskEnded(id, task: "index"),
      .hold(id, true), .hold(id, false),
    ]
    #expect(world.events == expected)
    #expect(conversation.statusText == "reads")
    world.forget()
    try world.notify(
      "READY=1\nX_DORMOUSE_TASK=index\nX_DORMOUSE_TASK_END=index\nX_DORMOUSE_HOLD=1\n"
        + "X_DORMOUSE_HOLD=0\nSTATUS=writes", conversation)
    try world.watches.serve()
    #expect(world.events == [.taskBegan(id, task: "index", limit: nil)] + expected.dropFirst())
    #expect(conversation.statusText == "writes")
  }

  @Test func `Notifications that only NOTIFY_SOCKET has are passed to the engine`() throws {
    let conversation = try world.begin()
    try world.notify(
      "EXTEND_TIMEOUT_USEC=5000000\nRELOADING=1\nWATCHDOG=trigger\nWATCHDOG_USEC=2000000\n"
        + "STOPPING=1\nMAINPID=7", conversation)
    try world.watches.serve()
    #expect(
      world.events == [
        .extendTimeout(id, .seconds(5)), .watchdogTriggered(id),
        .watchdogInterval(id, .seconds(2)),
      ])
    #expect(try world.recorded().watchdog == 2_000_000_000)
    world.forget()
    #expect(!conversation.canAnswer)
    try world.notify("X_DORMOUSE_DONE=1", conversation)
    try world.notify("X_DORMOUSE_DONE=1", conversation)
    try world.watches.serve()
    #expect(world.events == [.shedAnswered(id), .shedAnswered(id)])
    #expect(conversation.canAnswer && !conversation.canShed && world.channelChanges == 1)
  }

  @Test(arguments: [false, true])
  func `READY=1 makes a worker ready that is awaited, over any channel`(overSocket: Bool) throws {
    let world = try ConversationWorld(.launching)
    let conversation = try world.begin()
    world.worker.readiness = ReadinessWatch(
      .notify, try #require(world.worker.process), of: world.adapters.handle(world.worker),
      heldBy: world.adapters.processes)
    if overSocket {
      let worker = try world.connect(conversation)
      try worker.say(.ready)
    } else {
      try world.notify("READY=1", conversation)
    }
    try world.watches.serve()
    #expect(world.events == [.ready(id)])
  }

  @Test func `A reload is over with the READY=1 that follows its RELOADING=1`() throws {
    // The test's own process handles the signal and does nothing.
    signal(SIGWINCH) { _ in }
    let world = try ConversationWorld { $0.reloadSignal = SIGWINCH }
    let conversation = try world.begin()
    var results: [ControlResponse.Result] = []
    world.adapters.reloads.reloadWorker(
      ControlCall(request: ControlRequest(id: 7, verb: .reloadWorker, worker: "web")) {
        results.append($0.result)
      })
    try world.notify("READY=1", conversation)
    try world.notify("RELOADING=1", conversation)
    try world.watches.serve()
    #expect(results == [])
    try world.notify("READY=1", conversation)
    try world.watches.serve()
    #expect(results == [.done])
  }

  @Test func `A hold that arrives while the worker is falling asleep wakes it`() throws {
    let conversation = try world.begin()
    let worker = try world.connect(conversation)
    try world.suspend()
    try worker.say(.hold(true))
    try world.watches.serve()
    #expect(
      world.events == [
        .hold(id, true),
        .wakeNeeded(id, "its request not to be suspended, sent while it was being suspended"),
      ])
  }

  @Test func `A hold that is read while the worker is being hibernated wakes it`() throws {
    let world = try ConversationWorld(.suspended)
    let conversation = try world.begin()
    let worker = try world.connect(conversation)
    let driver = world.adapters.driver
    driver.send(.footprint(id, .megabytes(8)))
    driver.request(.hibernate, id) { _ in }
    #expect(driver.state.state(of: id) == .hibernating)
    try worker.say(.hold(true))
    try world.watches.serve()
    #expect(
      world.events.last
        == .wakeNeeded(id, "its request not to be suspended, sent while it was being suspended"))
  }

  @Test func `A task that a worker began before its sleep wakes it, and no end does`() throws {
    let world = try ConversationWorld(.suspended)
    let conversation = try world.begin()
    let worker = try world.connect(conversation)
    try worker.say(.beginTask(name: "a", limitSeconds: nil))
    try worker.say(.beginTask(name: "b", limitSeconds: 0), .hold(false))
    try world.watches.serve()
    #expect(
      world.events == [
        .taskBegan(id, task: "a", limit: nil),
        .wakeNeeded(id, "its background task a, sent while it was being suspended"),
        .taskBegan(id, task: "b", limit: .zero), .hold(id, false),
      ])
  }

  @Test func `Few messages to NOTIFY_SOCKET are read in one turn of the loop`() throws {
    let conversation = try world.begin(pressure: false, talk: false)
    for _ in 0..<9 { try world.notify("X_DORMOUSE_HOLD=1", conversation) }
    try world.watches.serveOnce()
    #expect(world.events.count == 8)
    try world.watches.serve()
    #expect(world.events.count == 9)
  }

  @Test func `A worker that connects to MEMORY_PRESSURE_WATCH can shed for its run`() throws {
    let conversation = try world.begin()
    #expect(conversation.pressure?.listened == nil)
    let listener = try UnixSocket.connected(to: #require(conversation.pressurePath), .stream)
    // A listener may write a threshold, which has no meaning.
    try listener.writeAll("some 150000 2000000")
    try world.watches.serve()
    #expect(conversation.canShed && !conversation.canAnswer && world.channelChanges == 1)
    #expect(conversation.pressure?.listened != nil)
    shutdown(listener.raw, Int32(SHUT_RDWR))
    try world.watches.serve()
    #expect(conversation.pressure?.listened == nil && conversation.canShed)
    #expect(world.channelChanges == 1)
  }

  @Test func `Messages wait until the first process is known and the daemon listens`() throws {
    let conversation = try world.begin(listens: false)
    let process = world.worker.process
    world.worker.process = nil
    let worker = try WorkerSocketPeer(try #require(conversation.workerSocketPath))
    try worker.say(.hold(true))
    try world.notify("WATCHDOG=trigger", conversation)
    try world.watches.serveOnce()
    #expect(world.events == [])
    world.worker.process = process
    try world.watches.serve()
    #expect(world.events == [.watchdogTriggered(id)])
    try conversation.listenToConnections()
    try world.watches.serve()
    #expect(world.events == [.watchdogTriggered(id), .hold(id, true)])
  }
}
