import CLinux
import Lifecycle
import Linux
import Supervision
import Testing

@testable import Daemon

@Suite("What a worker's messages do in the daemon") struct WorkerConversationsTests {
  private let talk: ConversationWorld
  private var world: AdapterWorld { talk.adapters }
  private var id: WorkerID { talk.id }

  init() throws { talk = try ConversationWorld { $0.fdstore = 2 } }

  @Test func `Descriptors that a worker stores are kept in one store beyond its run`() throws {
    let worker = talk.worker
    let conversation = try talk.begin(acceptsDescriptors: true)
    let socket = try UnixSocket.connected(
      to: try #require(conversation.notifyPath), .datagram)
    #expect(worker.stored == nil)
    for name in ["one", "two"] {
      let stored = try EventCounter().descriptor
      let bytes = Array("FDSTORE=1\nFDNAME=\(name)\nFDPOLL=0".utf8)
      try shim("sendmsg") {
        clinux_send_with_descriptor(socket.raw, bytes, Int64(bytes.count), stored.raw)
      }
      conversation.receiveNotifications()
    }
    let store = try #require(worker.stored)
    #expect(store.entriesForLaunch().map(\.name) == ["one", "two"])
    worker.endRun()
    #expect(worker.stored === store)
  }

  @Test func `A worker's snapshot is kept`() throws {
    let conversation = try talk.begin()
    let worker = try talk.connect(conversation)
    try worker.say(.snapshot(.text("half done")))
    try talk.watches.serve()
    var shown: SleepSnapshot?
    try world.turn {
      var isLoaded = false
      world.snapshots.load("web") {
        shown = $0
        isLoaded = true
      }
      try world.turn { isLoaded }
      return shown != nil
    }
    #expect(shown?.isText == true && shown?.content == Array("half done".utf8))
  }

  @Test func `A worker without channels is asked nothing and gets no message`() throws {
    world.conversations.expireTask(id, "upload")
    world.conversations.expireTask(WorkerID("unknown"), "upload")
    #expect(world.logged.contains("web: background task upload is out of time"))
    world.conversations.sendPressure()
  }

  @Test func `A new level of pressure is announced to running workers only`() throws {
    let sleeper = try ConversationWorld(.suspended)
    let ends = try [talk, sleeper].map { world in
      let end = try world.connect(world.begin())
      _ = try end.hear()
      return end
    }
    for world in [talk, sleeper] {
      world.pressure = .critical
      world.adapters.conversations.sendPressure()
    }
    #expect(try ends[0].hear().count == 1)
    #expect(try ends[1].hear() == [])
  }

  @Test func `A worker that offers no purgeable memory has nothing purged`() throws {
    let failure = Event.purgeFailed(id, "it offers no purgeable memory")
    world.conversations.purge(id)
    #expect(world.notes.all == [failure])
    _ = try talk.begin()
    world.conversations.purge(id)
    #expect(world.notes.all == [failure, failure])
    world.conversations.purge(WorkerID("unknown"))
    #expect(
      world.notes.all.last
        == .purgeFailed(WorkerID("unknown"), "it offers no purgeable memory"))
  }

  @Test func `Messages of a worker that was freed, and its end, concern nothing`() throws {
    let world = try AdapterWorld()
    var worker: WorkerUnit? = try world.add()
    var channels = WorkerChannels()
    channels.notify = try NotifySocket(path: world.scratch.uniquePath("notify"))
    try world.conversations.makeConversation(#require(worker), over: channels)
    let conversation = try #require(worker?.conversation)
    world.workers.removeAll()
    worker = nil
    conversation.receiveNotifications()
    conversation.end()
    #expect(conversation.isOver && world.notes.all == [])
  }

  // MARK: watchdogs

  /// The worker, as it was launched with a watchdog of 5 s.
  @discardableResult
  private func watched() -> WorkerUnit {
    talk.worker.configuration.watchdog = .seconds(5)
    talk.worker.launched = talk.worker.configuration
    return talk.worker
  }

  @Test func `A launch reports the watchdog interval if a sign of life can be sent`() throws {
    let worker = watched()
    world.conversations.startWatchdog(of: worker)
    #expect(talk.events == [], "it has no socket for it")
    _ = try talk.begin()
    world.conversations.startWatchdog(of: worker)
    let reported = Event.watchdogInterval(id, .seconds(5))
    #expect(talk.events == [reported])
    // A reload applies at the next launch.
    worker.configuration.watchdog = .seconds(7)
    world.conversations.startWatchdog(of: worker)
    #expect(talk.events == [reported, reported])
  }

  @Test func `A worker's own watchdog interval has priority during its run`() throws {
    let worker = watched()
    _ = try talk.begin()
    world.conversations.setWatchdog(of: worker, to: .seconds(2))
    world.conversations.startWatchdog(of: worker)
    let reported = Event.watchdogInterval(id, .seconds(2))
    #expect(talk.events == [reported, reported])
    worker.endRun()
    watched()
    _ = try talk.begin()
    world.conversations.startWatchdog(of: worker)
    #expect(talk.events.last == .watchdogInterval(id, .seconds(5)))
  }

  @Test func `A check of the watchdog reads the last sign of life from the socket`() throws {
    world.conversations.checkWatchdog(id)
    #expect(talk.events == [.watchdogSeen(id, at: nil)])
    let conversation = try talk.begin()
    talk.timers.advance(by: .seconds(3))
    try talk.notify("WATCHDOG=1", conversation)
    world.conversations.checkWatchdog(id)
    #expect(talk.events.last == .watchdogSeen(id, at: talk.timers.now))
    world.conversations.checkWatchdog(WorkerID("gone"))
    #expect(talk.events.count == 2, "a worker that was removed has none")
  }
}
