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

private final class Observer: EngineObserver {
  var events: [String] = []

  func handled(_ event: Event, directives: [Directive], engine: Engine, at now: Instant) {
    events.append("\(event)".prefix { $0 != "(" } + " \(now.nanoseconds)")
  }
}

@Suite("The engine's driver") struct EngineDriverTests {
  private let timers = FakeTimers()
  private let saved = FakeRecords()
  private let executor = Executor()
  private let observer = Observer()
  private let driver: EngineDriver
  private let id = WorkerID("web")

  init() {
    driver = EngineDriver(
      Engine(policy: LifecyclePolicy(name: "test")), clock: timers,
      replies: RequestReplies(saved, timers: timers))
    driver.connect([observer]) { [executor] in
      executor.execute($0)
    } whenQuiet: { [executor] in
      executor.quietCount += 1
    }
    driver.send(.added(id, WorkerProfile(policy: LifecyclePolicy(name: "test"))))
  }

  @Test func `The engine gets the machine's sleep before any other event`() {
    timers.sleep(for: .milliseconds(20))
    driver.send(.activity(id))
    #expect(observer.events.last?.hasPrefix("activity") == true && observer.events.count == 2)
    timers.sleep(for: .seconds(3600))
    driver.send(.activity(id))
    #expect(observer.events.count == 4)
    #expect(observer.events[2].hasPrefix("machineSlept "))
    #expect(observer.events[3].hasPrefix("activity "))
    timers.advance(by: .seconds(3600))
    driver.send(.activity(id))
    #expect(observer.events.count == 5, "time awake is no sleep")
  }

  @Test func `Events that arise while all is quiet are handled without recursion`() {
    var (depth, deepest, quiet) = (0, 0, 0)
    driver.connect(
      [observer],
      whenQuiet: { [driver, id] in
        quiet += 1
        depth += 1
        deepest = max(deepest, depth)
        // A daemon that ends sends one request for each of its workers, too.
        if quiet == 1 { for _ in 0..<1000 { driver.send(.activity(id)) } }
        depth -= 1
      })
    driver.send(.activity(id))
    #expect(observer.events.count == 1002 && deepest == 1 && quiet == 2)
    driver.connect([])
  }

  private func isLaunch(_ directive: Directive) -> Bool {
    if case .launch = directive { true } else { false }
  }

  @Test("Directives are executed in their order, and the engine's answer reaches the client once")
  func request() {
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
    #expect(
      observer.events.map { $0.prefix { $0 != " " } }.suffix(3) == ["request", "launched", "ready"])
  }

  @Test(
    "A resume is executed before the event is noted for the journal, and what follows it after that"
  )
  func resumeFirst() {
    driver.request(.start, id) { _ in }
    driver.send(.launched(id))
    driver.send(.ready(id))
    var notedAtResume: Int?
    executor.react = { [driver, observer] directive in
      switch directive {
      case .suspend(let id): driver.send(.suspended(id))
      case .resume: notedAtResume = observer.events.count
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
    let noted = observer.events.count
    driver.request(.wake, id) { _ in }
    #expect(notedAtResume == noted)
    #expect(observer.events.count == noted + 1)
  }

  @Test func `The end of a chain of events is reported once, after the last event`() {
    executor.react = { [driver, id] in if self.isLaunch($0) { driver.send(.launched(id)) } }
    let before = executor.quietCount
    driver.request(.start, id) { _ in }
    #expect(executor.quietCount == before + 1)
  }

  @Test("Deadlines are passed to the engine when their time has come, and not before")
  func deadlines() throws {
    driver.request(.start, id) { _ in }
    driver.send(.launched(id))
    driver.send(.ready(id))
    // The worker is suspended when it has been in the background for a while.
    driver.request(.background, id) { _ in }
    let deadline = try #require(driver.nextDeadline)
    let count = observer.events.count
    driver.passDeadlines()
    #expect(observer.events.count == count)
    timers.advance(by: deadline - timers.now)
    driver.passDeadlines()
    #expect(observer.events.last == "deadline \(deadline.nanoseconds)")
  }
}

@Suite("Replies to requests") struct RequestRepliesTests {
  private let timers = FakeTimers()
  private let saved = FakeRecords()
  private let replies: RequestReplies

  init() { replies = RequestReplies(saved, timers: timers) }

  private final class Heard { var texts: [String] = [] }

  private func ask(_ heard: Heard) -> Request.ID { replies.await { heard.texts.append($0.text) } }

  @Test func `Replies wait until the records are on disk, and are then sent in their order`() {
    let heard = Heard()
    let (first, second) = (ask(heard), ask(heard))
    saved.isSaved = false
    replies.deliver(Answer(.done, "one"), to: first)
    // An answer doesn't overtake an earlier one, even if everything is saved by now.
    saved.isSaved = true
    replies.deliver(Answer(.done, "two"), to: second)
    #expect(heard.texts.isEmpty)
    saved.save()
    #expect(heard.texts == ["one", "two"])
  }

  @Test func `Replies are sent at once when the daemon ends, and only once`() {
    let heard = Heard()
    let (first, second) = (ask(heard), ask(heard))
    saved.isSaved = false
    replies.deliver(Answer(.done, "one"), to: first)
    replies.deliver(Answer(.done, "two"), to: second)
    replies.deliverAll()
    #expect(heard.texts == ["one", "two"])
    saved.save()
    timers.advance(by: .seconds(2))
    #expect(heard.texts == ["one", "two"])
  }

  @Test func `Replies are sent after a second in any case, and only once`() {
    let heard = Heard()
    let id = ask(heard)
    saved.isSaved = false
    replies.deliver(Answer(.done, "one"), to: id)
    timers.advance(by: .milliseconds(999))
    #expect(heard.texts.isEmpty)
    timers.advance(by: .milliseconds(1))
    #expect(heard.texts == ["one"])
    saved.save()
    replies.deliver(Answer(.done, "again"), to: id)
    #expect(heard.texts == ["one"])
  }
}
