import Lifecycle
import Policy
import Testing

@testable import Daemon

/// Records the directives, and reports outcomes when a test wants them.
private final class Executor {
  var executed: [Directive] = []
  var quietCount = 0
  var react: (Directive) -> Void = { _ in }

  func execute(_ directive: Directive) {
    executed.append(directive)
    react(directive)
  }
}

@Suite("The engine's driver") struct EngineDriverTests {
  private let timers = FakeLoop()
  private let saved = FakeRecords()
  private let executor = Executor()
  private let notes = EventNotes()
  private let driver: EngineDriver
  private let id = WorkerID("web")

  init() {
    driver = .forTest(timers, notes, saved)
    driver.connect(
      [notes], carryOut: executor.execute, whenQuiet: { [executor] in executor.quietCount += 1 })
    driver.send(.added(id, WorkerProfile(policy: LifecyclePolicy(name: "test"))))
  }

  @Test func `The engine gets the machine's sleep before any other event`() {
    timers.sleep(for: .milliseconds(20))
    driver.send(.activity(id))
    #expect(notes.events == ["added", "activity"])
    timers.sleep(for: .seconds(3600))
    driver.send(.activity(id))
    #expect(notes.events.suffix(2) == ["machineSlept", "activity"] && notes.events.count == 4)
    timers.advance(by: .seconds(3600))
    driver.send(.activity(id))
    #expect(notes.events.count == 5, "time awake is no sleep")
  }

  @Test func `Events that arise while all is quiet are handled without recursion`() {
    var (depth, deepest, quiet) = (0, 0, 0)
    driver.connect(
      [notes],
      whenQuiet: { [driver, id] in
        quiet += 1
        depth += 1
        deepest = max(deepest, depth)
        // A daemon that ends sends one request for each of its workers, too.
        if quiet == 1 { for _ in 0..<1000 { driver.send(.activity(id)) } }
        depth -= 1
      })
    driver.send(.activity(id))
    #expect(notes.events.count == 1002 && deepest == 1 && quiet == 2)
    driver.connect([])
  }

  private func isLaunch(_ directive: Directive) -> Bool {
    if case .launch = directive { true } else { false }
  }

  @Test func `Directives are executed in order, and the answer reaches the client once`() {
    var answers: [Answer] = []
    driver.request(.start, id) { answers.append($0) }
    #expect(executor.executed.contains(where: isLaunch))
    #expect(answers.isEmpty, "it is ready only later")
    driver.send(.launched(id))
    driver.send(.ready(id))
    #expect(answers.map(\.code) == [.done])
    driver.send(.exited(id, .exited(0)))
    #expect(answers.count == 1)
  }

  @Test func `An event that a directive causes is handled after the directives before it`() {
    executor.react = { [driver, id] directive in
      guard self.isLaunch(directive) else { return }
      driver.send(.launched(id))
      // The engine hasn't handled the event yet.
      #expect(driver.state.state(of: id) == .launching)
      driver.send(.ready(id))
      #expect(driver.state.state(of: id) == .launching)
    }
    driver.request(.start, id) { _ in }
    #expect(driver.state.state(of: id) == .foreground)
    #expect(notes.events.suffix(3) == ["request", "launched", "ready"])
  }

  @Test func `A resume is executed before its event is noted, and the next one after that`() {
    driver.request(.start, id) { _ in }
    driver.send(.launched(id))
    driver.send(.ready(id))
    var notedAtResume: Int?
    executor.react = { [driver, notes] directive in
      switch directive {
      case .suspend(let id): driver.send(.suspended(id))
      case .resume: notedAtResume = notes.events.count
      default: break
      }
    }
    driver.request(.suspend, id) { _ in }
    // The worker is suspended after the time that its policy permits.
    for _ in 0..<20 where driver.state.state(of: id) != .suspended {
      timers.advance(by: .seconds(60))
      driver.passDeadlines()
    }
    #expect(driver.state.state(of: id) == .suspended)
    let noted = notes.events.count
    driver.request(.wake, id) { _ in }
    #expect(notedAtResume == noted)
    #expect(notes.events.count == noted + 1)
  }

  @Test func `The end of a chain of events is reported once, after the last event`() {
    executor.react = { [driver, id] in if self.isLaunch($0) { driver.send(.launched(id)) } }
    let before = executor.quietCount
    driver.request(.start, id) { _ in }
    #expect(executor.quietCount == before + 1)
  }

  @Test func `Deadlines are passed to the engine when their time has come, not before`() throws {
    driver.request(.start, id) { _ in }
    driver.send(.launched(id))
    driver.send(.ready(id))
    // The worker is suspended when it has been in the background for a while.
    driver.request(.background, id) { _ in }
    let deadline = try #require(driver.nextDeadline)
    let count = notes.events.count
    driver.passDeadlines()
    #expect(notes.events.count == count)
    timers.advance(by: deadline - timers.now)
    driver.passDeadlines()
    #expect(notes.events.last == "deadline")
  }
}

@Suite("Replies to requests") struct RequestRepliesTests {
  private let timers = FakeLoop()
  private let saved = FakeRecords()
  private let replies: RequestReplies
  private let heard = Recorded<String>()

  init() { replies = RequestReplies(saved, timers: timers) }

  private func ask() -> Request.ID { replies.await { [heard] in heard.all.append($0.text) } }

  @Test func `Replies wait until the records are on disk, and are then sent in their order`() {
    let (first, second) = (ask(), ask())
    saved.isSaved = false
    replies.deliver(Answer(.done, "one"), to: first)
    // An answer doesn't overtake an earlier one, even if everything is saved by now.
    saved.isSaved = true
    replies.deliver(Answer(.done, "two"), to: second)
    #expect(heard.all.isEmpty)
    saved.save()
    #expect(heard.all == ["one", "two"])
  }

  @Test func `Replies are sent at once when the daemon ends, and only once`() {
    let (first, second) = (ask(), ask())
    saved.isSaved = false
    replies.deliver(Answer(.done, "one"), to: first)
    replies.deliver(Answer(.done, "two"), to: second)
    replies.deliverAll()
    #expect(heard.all == ["one", "two"])
    saved.save()
    timers.advance(by: .seconds(2))
    #expect(heard.all == ["one", "two"])
  }

  @Test func `Replies are sent after a second in any case, and only once`() {
    let id = ask()
    saved.isSaved = false
    replies.deliver(Answer(.done, "one"), to: id)
    timers.advance(by: .milliseconds(999))
    #expect(heard.all.isEmpty)
    timers.advance(by: .milliseconds(1))
    #expect(heard.all == ["one"])
    saved.save()
    replies.deliver(Answer(.done, "again"), to: id)
    #expect(heard.all == ["one"])
  }
}

@Suite("Requests about workers") struct WorkerRequestsTests {
  private let timers = FakeLoop()
  private let notes = EventNotes()
  private let returning = ReturningWorkers()
  private let driver: EngineDriver
  private let requests: WorkerRequests
  private let unit = WorkerUnit.forTest("web")
  private var id: WorkerID { unit.id }

  private let heard = Recorded<Answer.Code>()

  init() {
    driver = .forTest(timers, notes)
    requests = WorkerRequests(driver: driver, returning: returning)
    driver.send(.added(unit.id, unit.profile))
  }

  private func ask(_ verb: Request.Verb) {
    requests.request(verb, id) { [heard] in heard.all.append($0.code) }
  }

  @Test func `Requests about a worker of an earlier daemon wait for its adoption`() {
    returning.begin(id)
    ask(.wake)
    ask(.start)
    #expect(notes.events == ["added"] && heard.all.isEmpty && requests.isAlive(id))
    driver.send(.adopted(id, unit.profile, .background))
    returning.finish(id)
    #expect(notes.events == ["added", "adopted", "request", "request"])
    #expect(heard.all == [.done, .done], "it runs: a second process isn't started")
    #expect(requests.isAlive(id))
  }

  @Test func `Requests about a worker that ends before its adoption are refused`() {
    returning.begin(id)
    ask(.wake)
    returning.finish(id)
    #expect(heard.all == [.refused] && !requests.isAlive(id))
    #expect(!requests.isAlive(WorkerID("unknown")))
  }
}
