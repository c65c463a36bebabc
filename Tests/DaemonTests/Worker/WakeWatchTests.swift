import Glibc
import Linux
import Policy
import Testing

@testable import Daemon
@testable import Supervision

@Suite("What wakes a sleeping worker") struct WakeWatchTests {
  private let world: SleepWorld
  private let watch: WakeWatch
  private let inputs: FakeInputs

  init() throws {
    world = try SleepWorld()
    watch = world.makeWatch()
    inputs = world.inputs
  }

  private func listen(at inputs: FakeInputs? = nil) {
    watch.listen(at: .success(inputs ?? self.inputs))
  }

  @Test func `Arrivals at the same time wake a worker once, with a client's priority`() throws {
    listen()
    try world.watches.serve()
    #expect(world.events.isEmpty)
    inputs.arrive("a connection")
    inputs.arrive("data on its stdin")
    try world.watches.serve()
    try world.watches.serve()
    #expect(world.events == [.wakeNeeded(world.id, "a connection")])
    #expect(world.memory.prioritized == 1 && inputs.keeps == 1)
    #expect(inputs.admissions == 0)
    inputs.arrive("another connection")
    try world.watches.serve()
    #expect(world.wakes == ["a connection", "another connection"])
  }

  @Test func `Nothing is left of the wake watch when its worker ends`() throws {
    let listener = try TestListener()
    world.worker.configuration.healthChecksWhileAsleep = [AsleepAnswer(port: listener.port)]
    inputs.answered = [listener.asleep]
    listen()
    watch.timer.set(at: world.timers.now + .seconds(5), "a timer that it has set")
    #expect(world.watches.active == 2 && watch.answeredCount == 0)
    #expect(world.timers.pending == [.seconds(5)])
    world.worker.managerWatch = { nil }
    inputs.arrive("a connection")
    watch.stop()
    try world.watches.serve()
    world.timers.advance(by: .seconds(60))
    #expect(world.watches.active == 0 && world.timers.pending.isEmpty && world.events.isEmpty)
    #expect(world.worker.managerWatch == nil && inputs.admissions == 1)
    #expect(watch.answeredCount == nil)
    watch.wakeForWaitingInput()
    #expect(world.events.isEmpty)
  }

  @Test func `A worker that ended while it was being suspended isn't watched`() throws {
    let listener = try TestListener()
    inputs.answered = [listener.asleep]
    watch.end()
    listen()
    #expect(world.watches.active == 0 && watch.answeredCount == nil && watch.isOver)
    watch.wakeForWaitingInput()
    #expect(world.events.isEmpty && world.logged.isEmpty)
  }

  @Test func `A worker that falls asleep again is woken by its new inputs only`() throws {
    listen()
    let later = try FakeInputs()
    listen(at: later)
    inputs.arrive("an arrival at what was watched before")
    later.arrive("data")
    try world.watches.serve()
    #expect(world.wakes == ["data"] && world.watches.active == 1)
  }

  @Test func `A failure to find a worker's inputs is logged, and nothing is watched`() throws {
    let error = SystemCallError("pidfd_getfd", on: "descriptor 3", code: EPERM)
    watch.listen(at: .failure(error))
    #expect(world.logged == ["may miss a wake: \(error)"])
    #expect(world.watches.active == 0)
    watch.wakeForWaitingInput()
    #expect(world.events.isEmpty)
  }

  @Test func `An input that can't be watched is logged, and others wake the worker`() throws {
    let error = SystemCallError("epoll_ctl", on: "descriptor 3", code: ENOSPC)
    inputs.refusals = [error]
    listen()
    #expect(world.logged == ["may miss a wake: \(error)"])
    inputs.arrive("data")
    try world.watches.serve()
    #expect(world.wakes == ["data"])
  }

  @Test func `A watch that the loop refuses is logged, and no health check answered`() throws {
    let listener = try TestListener()
    inputs.answered = [listener.asleep]
    world.watches.refusal = ENOSPC
    listen()
    #expect(world.logged.count == 1 && watch.answeredCount == nil)
  }

  @Test func `Waits that can't be watched are logged when they change`() throws {
    inputs.unwatched = ["the release of a file lock"]
    listen()
    listen()
    #expect(watch.unwatched == ["the release of a file lock"])
    #expect(world.logged.count == 1)
    inputs.unwatched = []
    listen()
    #expect(watch.unwatched.isEmpty && world.logged.count == 1)
    inputs.unwatched = ["a message queue", "the release of a file lock"]
    listen()
    #expect(world.logged.last?.contains("a message queue, the release of a file lock") == true)
  }

  @Test func `A worker's own timer that nothing wakes it for is logged once`() throws {
    let times = [DueTime(source: .timeout, remaining: .seconds(18), whole: .seconds(20))]
    for _ in 1...2 {
      listen()
      watch.timer.set(times, shortest: nil)
      watch.recordStoppedWork(times, isWriting: true)
      let timer = StoppedTimer(interval: .seconds(20), repeats: true)
      #expect(watch.stoppedWork == .timer(timer))
      let snapshot = try #require(world.driver.state.snapshot(of: world.id, at: world.timers.now))
      let reporter = WorkerReporter(
        snapshot: snapshot, facts: WorkerFacts(worker: world.worker), scan: nil,
        now: world.timers.now)
      #expect(reporter.report(withGroup: false).stoppedTimerSeconds == 20)
      #expect(
        watch.stoppedWork?.sentence.contains("`background: { wake_for_timers: 20s }`") == true)
      watch.stop()
      #expect(watch.stoppedWork == nil)
    }
    #expect(world.logged.count == 1)
    #expect(world.logged.first?.contains("(every 20 s) doesn't run while it sleeps") == true)
    // The worker is woken for this timer.
    listen()
    watch.timer.set(times, shortest: .seconds(10))
    watch.recordStoppedWork(times, isWriting: true)
    #expect(watch.stoppedWork == nil)
    watch.stop()
  }

  @Test func `A worker that wrote regularly until it sleeps is logged with a remedy`() throws {
    for _ in 1...2 {
      listen()
      watch.recordStoppedWork([], isWriting: true)
      #expect(watch.stoppedWork == .writing)
      watch.stop()
    }
    #expect(world.logged.count == 1)
    #expect(world.logged.first?.contains("`background: { suspend_after: never }`") == true)
    listen()
    watch.recordStoppedWork([], isWriting: false)
    #expect(watch.stoppedWork == nil)
    watch.stop()
  }

  @Test func `Timers below a second are housekeeping, and the first other one counts`() {
    func time(_ remaining: Duration, _ whole: Duration?) -> DueTime {
      DueTime(source: .timer, remaining: remaining, whole: whole)
    }
    #expect(StoppedTimer([time(.milliseconds(40), .milliseconds(100))]) == nil)
    #expect(StoppedTimer([]) == nil)
    let times = [
      time(.milliseconds(40), .milliseconds(100)), time(.seconds(50), .seconds(60)),
      time(.seconds(3), .seconds(5)), time(.seconds(3), nil),
    ]
    #expect(StoppedTimer(times) == StoppedTimer(interval: .seconds(5), repeats: true))
    #expect(
      StoppedTimer([time(.seconds(9), nil)]) == StoppedTimer(interval: .seconds(9), repeats: false))
  }

  @Test func `Input that was unread before a sleep is remembered for the next one`() throws {
    let (reader, writer) = try Descriptor.pipe()
    try writer.writeAll("unread")
    let input = try WorkerInput.ofTest(reader)
    let unread: UnreadInput = try #require(UnreadInput(input))
    inputs.unreadBaseline.unread[input.key] = unread
    listen()
    watch.stop()
    #expect(watch.unreadBaseline.unread.count == 1)
    watch.listen(at: .failure(SystemCallError("pidfd_getfd", on: "descriptor 3", code: EPERM)))
    #expect(
      watch.unreadBaseline.unread.count == 1, "inputs that can't be found change nothing of it")
    listen(at: try FakeInputs())
    #expect(watch.unreadBaseline.unread.isEmpty)
  }

  @Test func `A request at a port for health checks wakes like any arrival`() throws {
    let listener = try TestListener()
    world.worker.configuration.healthChecksWhileAsleep = [AsleepAnswer(port: listener.port)]
    inputs.answered = [listener.asleep]
    listen()
    let client = try LoopbackClient(listener.port)
    try client.say("hello")
    try listener.wait(for: .request)
    try world.watches.serve()
    watch.repeatWake()
    let reason = "a connection on port \(listener.port)"
    #expect(world.wakes == [reason, reason] && world.memory.prioritized == 1)
  }
}

@Suite("What a manager wants of a worker that sleeps") struct ManagerWatchingTests {
  private let world: SleepWorld
  private let seen = Seen()
  private var timers: FakeLoop { world.timers }
  private var worker: WorkerUnit { world.worker }
  private let interval = WorkerSleeps.managerInterval

  private final class Seen {
    var looks = 0
    var reason: String?
  }

  init() throws {
    world = try SleepWorld(.suspended)
    world.workers[world.id] = world.worker
  }

  private func check() -> String? {
    seen.looks += 1
    return seen.reason
  }

  @Test func `A manager's request is noticed within 100 ms, and wakes its worker`() {
    world.sleeps.watchManager(of: worker, check)
    timers.advance(by: interval * 5)
    #expect(seen.looks == 5 && world.wakes == [])
    seen.reason = "SIGTERM to its process 100"
    timers.advance(by: interval)
    #expect(world.wakes == ["SIGTERM to its process 100"] && world.memory.prioritized == 1)
    #expect(world.driver.state.state(of: worker.id) == .resuming)
    // A worker that is being woken isn't checked.
    timers.advance(by: interval * 3)
    #expect(seen.looks == 6)
  }

  @Test func `One timer checks all sleeping adopted workers, and ends with the last watch`() {
    let other = WorkerUnit.forTest("db", isDeclared: false)
    world.workers[other.id] = other
    world.driver.send(.adopted(other.id, other.profile, .suspended))
    for each in [worker, other] { world.sleeps.watchManager(of: each, check) }
    #expect(timers.pending == [interval])
    for each in [worker, other] { each.managerWatch = nil }
    timers.advance(by: interval)
    #expect(timers.pending.isEmpty && seen.looks == 0)
    world.sleeps.watchManager(of: worker, check)
    #expect(timers.pending.count == 1)
  }

  @Test func `An adopted worker whose process has ended isn't woken for its manager`() throws {
    world.sleeps.watchManager(of: worker, nil)
    #expect(timers.pending.isEmpty)
    world.sleeps.watchManager(of: worker, check)
    seen.reason = "its process 100 has ended"
    let end = try WorkerEndWorld()
    worker.ending = end.ending
    end.ending.rootDidEnd()
    #expect(worker.hasExited)
    timers.advance(by: interval)
    #expect(seen.looks == 0 && world.wakes == [])
  }
}
