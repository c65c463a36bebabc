import Glibc
import Lifecycle
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

  @Test("An arrival wakes a sleeping worker once, with the priority of a waiting client")
  func arrival() throws {
    listen()
    try world.watches.serve()
    #expect(world.events.isEmpty)
    inputs.arrive("data on its stdin")
    try world.watches.serve()
    try world.watches.serve()
    #expect(world.events == [.wakeNeeded(world.id, "data on its stdin")])
    #expect(world.memory.prioritized == 1 && inputs.admissions == 1)
  }

  @Test("Two arrivals at the same time are one wake, and a later one is reported again")
  func twoArrivals() throws {
    listen()
    inputs.arrive("a connection")
    inputs.arrive("data")
    try world.watches.serve()
    #expect(world.wakes == ["a connection"])
    inputs.arrive("another connection")
    try world.watches.serve()
    #expect(world.wakes == ["a connection", "another connection"])
  }

  @Test("An arrival from before the sleep is reported when the engine knows that the worker sleeps")
  func waiting() throws {
    inputs.waiting = "a request that it had not answered"
    listen()
    try world.watches.serve()
    #expect(world.wakes.isEmpty)
    watch.wakeForWaitingInput()
    #expect(world.wakes == ["a request that it had not answered"])
  }

  @Test("The cause of a wake is reported again while the resume fails, and not after it succeeded")
  func repeated() throws {
    listen()
    watch.repeatWake()
    #expect(world.wakes.isEmpty)
    inputs.arrive("a connection")
    try world.watches.serve()
    watch.repeatWake()
    #expect(world.wakes == ["a connection", "a connection"])
    watch.stop()
    watch.repeatWake()
    #expect(world.wakes.count == 2)
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

  @Test("An input that can't be watched is logged, and the others still wake the worker")
  func oneRefusal() throws {
    let error = SystemCallError("epoll_ctl", on: "descriptor 3", code: ENOSPC)
    inputs.refusals = [error]
    listen()
    #expect(world.logged == ["may miss a wake: \(error)"])
    inputs.arrive("data")
    try world.watches.serve()
    #expect(world.wakes == ["data"])
  }

  @Test("A watch that the loop refuses is logged, and no health check is answered either")
  func refusedWatch() throws {
    let listener = try TestListener()
    inputs.answered = [listener.asleep]
    let watch = world.makeWatch(RefusingWatches())
    watch.listen(at: .success(inputs))
    #expect(world.logged.count == 1 && watch.answeredCount == nil)
    watch.stop()
  }

  private final class RefusingWatches: DescriptorWatches {
    func watch(
      _ descriptor: Descriptor, _ interest: Epoll.Interest, file: StaticString, line: UInt,
      _ handler: @escaping EventLoop.Handler
    ) throws(SystemCallError) -> EventLoop.Token {
      throw SystemCallError("epoll_ctl", on: "", code: ENOSPC)
    }
    func change(
      _ descriptor: Descriptor, _ token: EventLoop.Token, to interest: Epoll.Interest
    ) throws(SystemCallError) {}
    func unwatch(_ descriptor: Descriptor, _ token: EventLoop.Token) {}
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

  @Test("A worker's own timer that nothing wakes it for is logged once, and known while it sleeps")
  func stoppedTimer() throws {
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

  @Test("A worker that wrote regularly until its suspension is logged once, with the remedy")
  func stoppedWriting() throws {
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

  @Test("Input that was unread when the worker fell asleep is remembered for its next sleep")
  func unreadBaseline() throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    let (reader, writer) = (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
    try writer.writeAll("unread")
    let input = try WorkerInput.ofTest(reader)
    let unread: UnreadInput = try #require(UnreadInput(input))
    inputs.unreadBaseline.unread[input.key] = unread
    listen()
    watch.stop()
    #expect(watch.unreadBaseline.unread.count == 1)
    let error = SystemCallError("pidfd_getfd", on: "descriptor 3", code: EPERM)
    watch.listen(at: .failure(error))
    #expect(
      watch.unreadBaseline.unread.count == 1, "inputs that can't be found change nothing of it")
    listen(at: try FakeInputs())
    #expect(watch.unreadBaseline.unread.isEmpty)
  }

  @Test(
    "A request at a port for health checks wakes with priority and is repeated, like any arrival")
  func answeredPort() throws {
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
