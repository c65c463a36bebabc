import Testing

@testable import Daemon

@Suite("Messages to a worker about its life cycle") struct LifecycleMessagesTests {
  private let world: ConversationWorld
  private let conversation: WorkerConversation

  init() throws {
    world = try ConversationWorld()
    conversation = try world.begin()
  }

  /// Connects a worker, which has received the greeting.
  private func connect() throws -> WorkerSocketPeer {
    let worker = try world.connect(conversation)
    _ = try worker.hear()
    return worker
  }

  /// Ends the worker's first process.
  private func exit() throws {
    let end = try WorkerEndWorld()
    world.worker.ending = end.ending
    end.ending.rootDidEnd()
  }

  private func answer(_ worker: WorkerSocketPeer) throws {
    for request in try worker.hear().requests { try worker.say(.done(id: request.id)) }
    try world.watches.serve()
  }

  /// Counts calls.
  private final class Count { var calls = 0 }

  private func suspend() throws -> Count {
    let count = Count()
    try world.suspend()
    conversation.willSuspend { count.calls += 1 }
    return count
  }

  @Test func `A worker without a connection is suspended without notice`() throws {
    #expect(try suspend().calls == 1)
  }

  @Test func `A worker is suspended a moment after its answer: its threads wait again`() throws {
    let worker = try connect()
    let count = try suspend()
    try answer(worker)
    #expect(count.calls == 0)
    world.timers.advance(by: WorkerConversation.suspendDelay)
    world.timers.advance(by: .seconds(1))
    #expect(count.calls == 1)
  }

  @Test func `A worker that doesn't answer is suspended after 250 ms`() throws {
    let worker = try connect()
    let count = try suspend()
    world.timers.advance(by: .milliseconds(249))
    #expect(count.calls == 0)
    world.timers.advance(by: .milliseconds(1))
    #expect(count.calls == 1)
    try answer(worker)
    world.timers.advance(by: .seconds(1))
    #expect(count.calls == 1)
  }

  @Test func `A worker that was woken or has ended isn't suspended after its answer`() throws {
    let worker = try connect()
    let woken = try suspend()
    world.adapters.driver.send(.suspendFailed(world.id, "it is busy"))
    try answer(worker)
    world.timers.advance(by: .seconds(1))
    let ended = try suspend()
    try answer(worker)
    conversation.end()
    world.timers.advance(by: .seconds(1))
    #expect(woken.calls == 0 && ended.calls == 0)
  }

  @Test func `A worker whose first process has ended isn't suspended`() throws {
    let worker = try connect()
    let count = try suspend()
    try exit()
    world.timers.advance(by: .seconds(1))
    #expect(count.calls == 0)
    withExtendedLifetime(worker) {}
  }

  @Test func `After a sleep a worker gets its duration, its cause and the pressure`() throws {
    let worker = try connect()
    conversation.didResume(after: .milliseconds(3058), reason: nil)
    #expect(
      try worker.hear() == [.didResume(id: 1, asleepSeconds: 3.058, cause: "adopted while it ran")])
    world.pressure = .critical
    conversation.didResume(after: .zero, reason: "it was not suspended: busy")
    #expect(
      try worker.hear() == [
        .didResume(id: 2, asleepSeconds: 0, cause: "it was not suspended: busy"),
        .pressure(level: "critical"),
      ])
    conversation.didResume(after: .zero, reason: nil)
    #expect(try worker.hear().count == 1, "it has heard of that pressure")
  }

  @Test func `A new connection doesn't keep the first one from the pressure level`() throws {
    let first = try connect()
    world.pressure = .warning
    let second = try connect()
    conversation.didResume(after: .zero, reason: nil)
    #expect(try first.hear().last == .pressure(level: "warning"))
    #expect(try second.hear().last == .pressure(level: "warning"))
  }

  @Test func `A worker is notified of the foreground and of the pressure level`() throws {
    let worker = try connect()
    conversation.didEnterForeground()
    world.pressure = .warning
    conversation.sendPressure()
    #expect(try worker.hear() == [.didEnterForeground(id: 1), .pressure(level: "warning")])
    // A `done` for a message that needs none isn't counted as a mistake.
    try worker.say(.done(id: 1))
    try world.watches.serve()
    #expect(conversation.talk?.withoutEffect == nil)
  }

  @Test func `A worker gets no messages after its first process has ended`() throws {
    let worker = try connect()
    try exit()
    conversation.didEnterForeground()
    conversation.sendPressure()
    #expect(!conversation.willTerminate(within: .seconds(2)) {})
    #expect(try worker.hear() == [])
  }

  @Test func `An expired task ends when the worker answers or sends endTask`() throws {
    let worker = try connect()
    conversation.taskExpired("index")
    #expect(try worker.hear().requests.map(\.request) == [.taskExpired(task: "index")])
    world.timers.advance(by: .seconds(60))
    #expect(world.events == [])
    conversation.taskExpired("index")
    try answer(worker)
    #expect(world.events == [.taskEnded(world.id, task: "index")])
    world.forget()
    conversation.taskExpired("index")
    try worker.say(.endTask(name: "index"))
    try world.watches.serve()
    #expect(world.events.allSatisfy { $0 == .taskEnded(world.id, task: "index") })
    #expect(!world.events.isEmpty)
    world.timers.advance(by: .seconds(60))
    #expect(conversation.talk?.withoutEffect == nil)
  }

  @Test func `Before its end a worker has half of the grace to save, or until it answers`() throws {
    let count = Count()
    #expect(!conversation.willTerminate(within: .seconds(2)) { count.calls += 1 })
    #expect(count.calls == 0, "nothing was asked")
    let worker = try connect()
    #expect(conversation.willTerminate(within: .seconds(2)) { count.calls += 1 })
    world.timers.advance(by: .milliseconds(999))
    #expect(count.calls == 0)
    world.timers.advance(by: .milliseconds(1))
    #expect(count.calls == 1)
    _ = try worker.hear()
    #expect(conversation.willTerminate(within: .seconds(2)) { count.calls += 1 })
    let asked = try #require(try worker.hear().requests.first)
    #expect(asked.request == .willTerminate(reason: "adopted while it ran") && asked.seconds == 2)
    try worker.say(.done(id: asked.id))
    try world.watches.serve()
    #expect(count.calls == 2)
  }

  @Test func `A worker that was killed, or has ended, isn't sent its stop signal`() throws {
    let worker = try connect()
    let count = Count()
    #expect(conversation.willTerminate(within: .seconds(2)) { count.calls += 1 })
    let end = try WorkerEndWorld()
    world.worker.ending = end.ending
    end.ending.kill()
    try answer(worker)
    world.worker.ending = nil
    #expect(conversation.willTerminate(within: .seconds(2)) { count.calls += 1 })
    conversation.end()
    world.timers.advance(by: .seconds(10))
    #expect(count.calls == 0)
  }
}
