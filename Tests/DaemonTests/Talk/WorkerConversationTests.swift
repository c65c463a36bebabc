import Glibc
import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("What a worker and the daemon say to each other") struct WorkerConversationTests {
  private let world: ConversationWorld
  private var id: WorkerID { world.id }
  /// The outcomes of questions.
  private let replies = Recorded<ConversationReply>()

  init() throws { world = try ConversationWorld() }

  private func ask(
    _ conversation: WorkerConversation, timeout: Duration? = .seconds(1)
  ) throws -> UInt64 {
    let number = conversation.ask(.willSuspend, within: .seconds(2), timeout: timeout) {
      [replies] in replies.all.append($0)
    }
    return try #require(number)
  }

  @Test func `A connection gets the worker's state and the pressure, and can be asked`() throws {
    let world = try ConversationWorld(.launching)
    let conversation = try world.begin()
    #expect(conversation.talk?.connectionCount == nil && !conversation.canShed)
    world.pressure = .urgent
    let worker = try world.connect(conversation)
    #expect(
      try worker.hear() == [
        .hello(version: 1, worker: "web", state: "launching", pressure: "urgent")
      ])
    #expect(conversation.talk?.connectionCount == 1)
    #expect(conversation.canShed && conversation.canAnswer && world.channelChanges == 1)
    _ = try world.connect(conversation)
    // Whether the worker is connected hasn't changed.
    #expect(conversation.talk?.connectionCount == 2 && world.channelChanges == 1)
  }

  @Test func `A request is completed once, and later answers are only counted`() throws {
    let conversation = try world.begin()
    let worker = try world.connect(conversation)
    let first = try ask(conversation)
    let asked = try worker.hear().requests
    #expect(asked.map(\.id) == [first] && asked.map(\.seconds) == [2])
    try worker.say(.done(id: first), .done(id: first), .done(id: 999))
    try world.watches.serve()
    #expect(replies.all == [.answered])
    let second = try ask(conversation)
    #expect(second > first)
    world.timers.advance(by: .seconds(1))
    #expect(replies.all == [.answered, .silent])
    try worker.say(.done(id: second), .done(id: second))
    try world.watches.serve()
    #expect(replies.all == [.answered, .silent])
    #expect(
      conversation.talk?.withoutEffect
        == "answers without effect: 1 late, 2 repeated, 1 to unknown requests")
    #expect(world.logged.contains("its answer to request \(second) came too late"))
    #expect(world.timers.pending == [] && world.events == [])
  }

  @Test func `A request waits for each connection that was asked and hasn't ended`() throws {
    let conversation = try world.begin()
    let workers = try (0..<3).map { _ in try world.connect(conversation) }
    let number = try ask(conversation)
    try workers[0].say(.done(id: number))
    try world.watches.serve()
    workers[1].hangUp()
    try world.watches.serve()
    #expect(replies.all == [])
    try workers[2].say(.done(id: number))
    try world.watches.serve()
    #expect(replies.all == [.answered])
  }

  @Test func `A late answer to the last shed request is a sign of life`() throws {
    let conversation = try world.begin()
    let worker = try world.connect(conversation)
    let numbers = try (0..<2).map { _ in
      let number = try #require(
        conversation.askForMemory(.didEnterBackground, within: .seconds(1)) { _ in })
      conversation.talk?.close(number)
      return number
    }
    try worker.say(.done(id: numbers[0]))
    world.adapters.sheds.beginShed(id, .memoryWarning, until: world.timers.now + .seconds(5))
    try worker.say(.done(id: numbers[1]))
    try world.watches.serve()
    #expect(world.worker.shed != nil && world.events == [])
    world.worker.shed = nil
    let last = try #require(
      conversation.askForMemory(.didEnterBackground, within: .seconds(1)) { _ in })
    conversation.talk?.close(last)
    try worker.say(.done(id: last))
    try world.watches.serve()
    #expect(world.events == [.shedAnswered(id)])
  }

  @Test func `A connection of another process is closed, and sometimes logged`() throws {
    let conversation = try world.begin()
    // The test's own process isn't the worker's.
    world.worker.process = try .forTest(ProcessStat.read(1).identity)
    for _ in 0..<4 {
      let stranger = try world.connect(conversation)
      #expect(try eventually { stranger.isClosed })
    }
    try world.notify("WATCHDOG_USEC=3000000", conversation)
    try world.watches.serve()
    #expect(world.events == [] && world.channelChanges == 0)
    #expect(world.logged.count == 3)
    #expect(conversation.talk?.withoutEffect == "connections refused or closed by the daemon: 4")
  }

  @Test func `Errors in a snapshot or an offer of memory are reported to the worker`() throws {
    let conversation = try world.begin()
    let worker = try world.connect(conversation)
    _ = try worker.hear()
    for (mime, base64) in [("image", "AAAA"), ("image/png\nX", "AAAA"), ("image/png", "iVBO!")] {
      try worker.say(.snapshot(.image(mime: mime, base64: base64)))
    }
    try worker.say(.purgeable)
    try world.watches.serve()
    let errors = try worker.hear().map {
      if case .error(let text) = $0 { text } else { "\($0)" }
    }
    #expect(errors.count == 4)
    #expect(errors.prefix(2).allSatisfy { $0.contains("`mime` is not a MIME type") })
    #expect(errors.dropFirst(2).first?.contains("`data` is not base64") == true)
    #expect(errors.last?.contains("the first message needs a descriptor") == true)
    #expect(world.events == [])
  }

  @Test func `Memory is on offer as long as its connection exists`() throws {
    let conversation = try world.begin()
    let worker = try world.connect(conversation)
    let memory = try OfferedMemory()
    try worker.say(.purgeable, passing: memory.descriptor)
    try world.watches.serve()
    try world.adapters.turn { !conversation.offers.isCounting }
    #expect(world.events == [.purgeableOffered(id, ByteCount(memory.bytes))])
    #expect(conversation.offers.inodes.count == 1)
    worker.hangUp()
    try world.watches.serve()
    #expect(world.events.last == .purgeableOffered(id, .zero))
    #expect(conversation.offers.inodes.isEmpty)
    #expect(conversation.talk?.connectionCount == nil && !conversation.canShed)
    #expect(world.channelChanges == 2)
    #expect(conversation.ask(.willSuspend, within: .seconds(1), timeout: nil) { _ in } == nil)
  }

  @Test func `A connection that doesn't read is closed by the daemon, and logged`() throws {
    let conversation = try world.begin()
    let worker = try world.connect(conversation)
    let cause = String(repeating: "c", count: 4000)
    for _ in 0..<10_000 where conversation.talk?.connectionCount != nil {
      conversation.send { .didResume(id: $0, asleepSeconds: 1, cause: cause) }
    }
    #expect(conversation.talk?.connectionCount == nil && !conversation.canShed)
    #expect(world.channelChanges == 2)
    #expect(world.logged.last?.contains("it does not read its messages") == true)
    #expect(try eventually { worker.isClosed })
  }

  @Test func `The run's end closes all connections and completes each open request once`() throws {
    let conversation = try world.begin()
    let worker = try world.connect(conversation)
    let paths = conversation.paths
    #expect(paths.count == 3 && world.watches.active == 3)
    _ = try ask(conversation)
    _ = try ask(conversation, timeout: nil)
    var nested = false
    _ = conversation.ask(.willSuspend, within: .seconds(1), timeout: .seconds(9)) { reply in
      replies.all.append(reply)
      nested = conversation.ask(.willSuspend, within: .seconds(1), timeout: nil) { _ in } == nil
    }
    let memory = try OfferedMemory()
    try worker.say(.purgeable, passing: memory.descriptor)
    try world.watches.serve()
    world.forget()
    try worker.say(.hold(true))

    conversation.end()
    #expect(replies.all == [.runEnded, .runEnded, .runEnded] && nested)
    #expect(world.watches.active == 0 && world.timers.pending == [])
    #expect(try eventually { paths.allSatisfy { access($0, F_OK) != 0 } })
    #expect(conversation.paths == [])
    #expect(conversation.talk?.connectionCount == nil && !conversation.canShed)
    #expect(conversation.offers.inodes.isEmpty && conversation.offers.purge == nil)
    #expect(try eventually { worker.isClosed })
    conversation.end()
    conversation.send { .didEnterForeground(id: $0) }
    conversation.receiveNotifications()
    try world.watches.serve()
    world.timers.advance(by: .seconds(100))
    #expect(replies.all.count == 3)
    // The last message isn't received, because the run has ended.
    #expect(world.events == [])
  }

  @Test func `Request numbers go on in the next run, so that old answers don't match`() throws {
    let first = try world.begin()
    _ = try world.connect(first)
    let old = try ask(first)
    first.end()
    let second = try world.begin()
    defer { second.end() }
    let worker = try world.connect(second)
    #expect(try ask(second) > old)
    try worker.say(.done(id: old))
    try world.watches.serve()
    #expect(replies.all == [.runEnded])
    #expect(second.talk?.withoutEffect == "answers without effect: 1 to unknown requests")
  }

  @Test func `A worker without a channel can't be asked, and has no signs of life`() throws {
    let conversation = try world.begin(notify: false, pressure: false, talk: false)
    #expect(conversation.paths == [] && world.watches.active == 0)
    #expect(conversation.lastSign() == nil && conversation.talk?.withoutEffect == nil)
    #expect(conversation.ask(.willSuspend, within: .seconds(1), timeout: nil) { _ in } == nil)
    conversation.sendPressure()
    conversation.receiveNotifications()
  }
}
