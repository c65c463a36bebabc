import CLinux
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport
import Testing
import WorkerProtocol

@testable import Daemon

@Suite("What a worker's messages do in the daemon") struct WorkerConversationsTests {
  private let world: AdapterWorld

  init() throws { world = try AdapterWorld() }

  /// With all channels, whose messages are heard.
  private func converse(
    _ runtime: WorkerUnit, takesDescriptors: Bool = false
  ) throws -> WorkerConversation {
    var channels = WorkerChannels()
    channels.notify = try NotifySocket(
      path: world.scratch.uniquePath("notify"), takesDescriptors: takesDescriptors)
    channels.talk = try WorkerSocket(path: world.scratch.uniquePath("worker"))
    world.conversations.makeConversation(runtime, over: channels)
    let conversation = try #require(runtime.conversation)
    try conversation.listen()
    try conversation.listenToConnections()
    return conversation
  }

  private func notify(_ text: String, _ conversation: WorkerConversation) throws {
    let path = try #require(conversation.notifyPath)
    try UnixSocket.connected(to: path, .datagram).writeAll(text)
  }

  private func recorded() throws -> WorkerRecord {
    world.services.records.drain()
    return try world.services.records.store.load("web")
  }

  @Test("An interval that a worker sets for its watchdog reaches the engine and the next daemon")
  func watchdog() throws {
    let runtime = try world.add()
    let conversation = try converse(runtime)
    try notify("WATCHDOG_USEC=3000000", conversation)
    try world.turn { !world.notes.all.isEmpty }
    #expect(world.notes.all == [.watchdogInterval(runtime.id, .seconds(3))])
    #expect(try recorded().watchdog == 3_000_000_000)
  }

  @Test("Messages wait in the socket while the worker has no process, and count when it has one")
  func early() throws {
    let runtime = try world.add("web", .terminated)
    let conversation = try converse(runtime)
    try notify("WATCHDOG_USEC=3000000", conversation)
    conversation.receiveNotifications()
    #expect(world.notes.all == [])
    runtime.process = try .forTest()
    conversation.receiveNotifications()
    #expect(world.notes.all == [.watchdogInterval(runtime.id, .seconds(3))])
  }

  @Test("A message of a process that isn't the worker's has no effect")
  func foreign() throws {
    let runtime = try world.add()
    let conversation = try converse(runtime)
    // The machine's first process is the worker's root.
    let root = try WorkerProcess.forTest(ProcessStat.read(1).identity)
    try #require(!root.owns(getpid()))
    runtime.process = root
    try notify("WATCHDOG_USEC=3000000", conversation)
    conversation.receiveNotifications()
    #expect(world.notes.all == [] && runtime.watchdogInterval == nil)
  }

  @Test("Descriptors that a worker stores are kept in one store beyond its run")
  func store() throws {
    let runtime = try world.add { $0.fdstore = 2 }
    let conversation = try converse(runtime, takesDescriptors: true)
    let socket = try UnixSocket.connected(
      to: try #require(conversation.notifyPath), .datagram)
    #expect(runtime.stored == nil)
    for name in ["one", "two"] {
      let stored = try EventCounter().descriptor
      let bytes = Array("FDSTORE=1\nFDNAME=\(name)\nFDPOLL=0".utf8)
      try shim("sendmsg") {
        clinux_send_with_descriptor(socket.raw, bytes, Int64(bytes.count), stored.raw)
      }
      conversation.receiveNotifications()
    }
    let store = try #require(runtime.stored)
    #expect(store.entriesForLaunch().map(\.name) == ["one", "two"])
    runtime.endRun()
    #expect(runtime.stored === store)
  }

  @Test("The engine's state, cause and pressure are what a new connection gets")
  func greeting() throws {
    let runtime = try world.add()
    let conversation = try converse(runtime)
    let worker = try WorkersEnd(try #require(conversation.workerSocketPath))
    try world.turn { conversation.connectionCount == 1 }
    #expect(
      try worker.hear() == [
        .hello(version: 1, worker: "web", state: "background", pressure: "normal")
      ])
    #expect(
      world.notes.all == [.channelsChanged(runtime.id, canShed: true, canAnswer: true)])
  }

  @Test("A snapshot is kept, and one that can't be shown is refused with the reason")
  func snapshots() throws {
    let runtime = try world.add()
    let conversation = try converse(runtime)
    let worker = try WorkersEnd(try #require(conversation.workerSocketPath))
    try worker.say(.snapshot(.text("half done")))
    try worker.say(.snapshot(.image(mime: "no type", base64: "AAAA")))
    var shown: SnapshotStore.Snapshot?
    try world.turn {
      var isLoaded = false
      world.snapshots.load(
        "web",
        then: world.services.loopReturn.callback {
          shown = $0
          isLoaded = true
        })
      try world.turn { isLoaded }
      return shown != nil
    }
    #expect(shown?.isText == true && shown?.content == Array("half done".utf8))
    let errors = try worker.hear().compactMap {
      if case .error(let text) = $0 { text } else { nil }
    }
    #expect(errors.count == 1 && errors[0].contains("`mime` is not a MIME type"))
    withExtendedLifetime(conversation) {}
  }

  @Test("A worker without channels is asked nothing and gets no message")
  func mute() throws {
    let runtime = try world.add()
    world.conversations.expireTask(runtime.id, "upload")
    world.conversations.expireTask(WorkerID("unknown"), "upload")
    #expect(world.logged.contains("web: background task upload is out of time"))
    world.conversations.sendPressure()
  }

  @Test("A new level of pressure is announced to workers that run, and not to those that sleep")
  func pressure() throws {
    let web = try world.add("web")
    let api = try world.add("api", .suspended)
    let conversations = try [web, api].map { try converse($0) }
    let ends = try conversations.map { try WorkersEnd(try #require($0.workerSocketPath)) }
    try world.turn { conversations.allSatisfy { $0.connectionCount == 1 } }
    _ = try ends.map { try $0.hear() }
    world.driver.send(.pressureSet(.critical, for: .seconds(60)))
    world.conversations.sendPressure()
    #expect(try ends[0].hear().count == 1)
    #expect(try ends[1].hear() == [])
  }

  @Test(
    "A worker that offers no purgeable memory has nothing purged, and the engine gets the reason")
  func purge() throws {
    let runtime = try world.add()
    let failure = Event.purgeFailed(runtime.id, "it offers no purgeable memory")
    world.conversations.purge(runtime.id)
    #expect(world.notes.all == [failure])
    _ = try converse(runtime)
    world.conversations.purge(runtime.id)
    #expect(world.notes.all == [failure, failure])
    world.conversations.purge(WorkerID("unknown"))
    #expect(
      world.notes.all.last
        == .purgeFailed(WorkerID("unknown"), "it offers no purgeable memory"))
  }

  @Test("Messages of a worker that was freed, and its end, concern nothing")
  func freed() throws {
    var runtime: WorkerUnit? = try world.add()
    let conversation = try converse(try #require(runtime))
    world.workers.removeAll()
    runtime = nil
    conversation.receiveNotifications()
    conversation.end()
    #expect(conversation.isOver && world.notes.all == [])
  }
}

@Suite("Requests for memory, as the daemon makes them")
struct WorkerRequestAdapterTests {
  private let world: AdapterWorld

  init() throws { world = try AdapterWorld() }

  // MARK: memory

  @Test("A request for memory that was never begun ends, so that the ladder continues")
  func neverBegun() throws {
    let id = WorkerID("web")
    let nothing = Event.shedFinished(id, before: .zero, after: .zero)
    world.sheds.finishShed(id)
    #expect(world.notes.all == [nothing])
    let runtime = try world.add("web", .terminated)
    world.sheds.beginShed(id, .memoryWarning, until: world.timers.now + .seconds(5))
    #expect(runtime.shed == nil && world.notes.all == [])
    world.sheds.finishShed(id)
    #expect(world.notes.all == [nothing])
  }

  @Test("Each request for memory replaces the one before it, and each run has one client for HTTP")
  func replaced() throws {
    let runtime = try world.add()
    let deadline = world.services.loop.now + .seconds(60)
    world.sheds.beginShed(runtime.id, .memoryWarning, until: deadline)
    let (first, http) = (runtime.shed, runtime.shedOverHTTP)
    #expect(first != nil && http != nil)
    world.sheds.beginShed(runtime.id, .memoryWarning, until: deadline)
    #expect(runtime.shed != nil && runtime.shed !== first && runtime.shedOverHTTP === http)
    world.sheds.finishShed(runtime.id)
    #expect(runtime.shed == nil)
  }
}
