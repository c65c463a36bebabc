import Glibc
import Supervision
import TestSupport
import Testing
import WorkerProtocol

@testable import Daemon

/// A worker's connections, which the test answers: a real socket, and no process.
private final class TalkWorld {
  let timers = FakeLoop()
  let talk: WorkerTalk
  private(set) var replies: [ConversationReply] = []
  private let scratch: Scratch
  /// The workers' ends of the connections, which stay open.
  private var peers: [WorkerSocketPeer] = []

  init() throws {
    scratch = try Scratch()
    talk = WorkerTalk(try WorkerSocket(path: scratch.path + "/worker"), timers: timers)
  }

  @discardableResult
  func connect() throws -> WorkerSocketPeer {
    let before = talk.socket.connectionIDs.count
    let end = try WorkerSocketPeer(talk.socket.path)
    // The kernel may report the connection a moment later.
    guard
      try eventually({
        _ = try talk.socket.service { $0 == getpid() }
        return talk.socket.connectionIDs.count > before
      })
    else { throw TestFailure("no connection") }
    peers.append(end)
    return end
  }

  @discardableResult
  func ask(
    _ number: UInt64, _ request: DaemonMessage.Request = .willSuspend,
    timeout: Duration? = .seconds(1), then: @escaping () -> Void = {}
  ) -> Bool {
    talk.ask(request, id: number, within: .seconds(2), timeout: timeout) { [unowned self] in
      replies.append($0)
      then()
    }
  }

  func answer(_ number: UInt64 = 1, by index: Int = 0) -> StrayAnswer? {
    talk.answered(number, by: talk.socket.connectionIDs[index])
  }
}

@Suite("Questions to a worker that wait for an answer") struct OpenQuestionsTests {
  private let world: TalkWorld
  private var talk: WorkerTalk { world.talk }

  init() throws { world = try TalkWorld() }

  private func ask(_ number: UInt64, _ request: DaemonMessage.Request = .willSuspend) -> Bool {
    world.ask(number, request, timeout: nil)
  }

  @Test func `A question without a timeout waits until the run ends, or it is closed`() throws {
    try world.connect()
    world.ask(1, timeout: nil)
    world.ask(2)
    talk.close(2)
    talk.close(99)
    world.timers.advance(by: .seconds(3600))
    #expect(world.replies == [] && world.timers.pending == [])
    talk.end()
    talk.end()
    #expect(world.replies == [.runEnded])
  }

  @Test func `A question that is asked because of another's end is answered by itself`() throws {
    try world.connect()
    world.ask(1) { [world] in world.ask(2) }
    #expect(world.answer(1) == nil)
    #expect(world.replies == [.answered] && world.timers.pending == [.seconds(1)])
    #expect(world.answer(2) == nil)
    #expect(world.replies == [.answered, .answered])
  }

  // MARK: requests over several connections

  @Test func `The end of a background task answers the question about it alone`() throws {
    try world.connect()
    #expect(ask(1, .taskExpired(task: "upload")) && ask(2, .taskExpired(task: "sync")) && ask(3))
    talk.didEndTask("upload")
    #expect(world.replies.count == 1)
    talk.didEndTask("upload")
    #expect(world.replies.count == 1)
    // The connection's own `done` wasn't needed, and is no mistake.
    #expect(world.answer(1) == nil && world.replies.count == 1)
    #expect(world.answer(2) == nil && world.replies.count == 2)
  }

  @Test func `A connection that the daemon has closed is no excuse for a missing answer`() throws {
    try world.connect()
    #expect(ask(1))
    let id = talk.socket.connectionIDs[0]
    talk.didDisconnect(id, byItself: false)
    #expect(!talk.isAbandoned(1) && world.replies.count == 0)
    #expect(ask(2))
    talk.didDisconnect(id, byItself: true)
    #expect(talk.isAbandoned(2) && !talk.isAbandoned(99))
  }

  @Test func `A connection that wasn't asked answers for one that has ended, once`() throws {
    try world.connect()
    #expect(ask(1))
    try world.connect()
    #expect(world.answer(1, by: 1) == .repeated, "the one that was asked is still there")
    talk.didDisconnect(talk.socket.connectionIDs[0], byItself: true)
    #expect(world.answer(1, by: 1) == nil && world.replies.count == 1)
    #expect(world.answer(1, by: 1) == .repeated && world.replies.count == 1)
  }

  @Test func `Only the last requests are remembered, an older one is unknown`() throws {
    try world.connect()
    for number: UInt64 in 1...40 {
      #expect(ask(number))
      talk.close(number)
    }
    #expect(world.answer(8) == .unknown && world.answer(9) == .late && world.answer(40) == .late)
    #expect(world.replies.count == 0)
  }

  @Test func `Useless answers are counted, and the first, second, fourth and eighth are logged`() {
    #expect(talk.withoutEffect == nil)
    #expect(
      (1...9).map { _ in talk.count(.late) } == [
        true, true, false, true, false, false, false, true, false,
      ])
    #expect(talk.count(.unknown))
    #expect(talk.countRefusal() && talk.countRefusal() && !talk.countRefusal())
    #expect(
      talk.withoutEffect
        == "answers without effect: 9 late, 1 to unknown requests; "
        + "connections refused or closed by the daemon: 3")
  }
}
