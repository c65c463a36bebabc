import Glibc
import Lifecycle
import Linux
import Policy
import Supervision
import Testing

@testable import Daemon

@Suite("A request for memory") struct ShedAttemptTests {
  private let world: ShedWorld

  init() throws { world = try ShedWorld() }

  private func finished(_ before: Int64, _ after: Int64) -> Event {
    .shedFinished(world.id, before: .megabytes(before), after: .megabytes(after))
  }

  @Test func `A shed signal is answered when a lower footprint is stable`() throws {
    let attempt = try world.begin(.signal(SIGUSR1))
    #expect(world.processes.signals == [SIGUSR1])
    world.timers.advance(by: .milliseconds(100))
    world.source.footprint = .megabytes(40)
    // The first measurement sees the footprint change, and the next three see it unchanged.
    world.timers.advance(by: .milliseconds(300))
    #expect(world.events == [])
    world.timers.advance(by: .milliseconds(100))
    #expect(world.isAnswered)
    world.timers.advance(by: .seconds(5))
    #expect(world.isAnswered, "once")
    attempt.finish()
    #expect(world.events.last == finished(100, 40))
    #expect(
      world.logged == ["memory request: \(ByteCount.megabytes(100)) → \(ByteCount.megabytes(40))"])
  }

  @Test func `A shed signal to a worker that frees nothing is answered after a second`() throws {
    let attempt = try world.begin(.signal(SIGUSR1))
    defer { attempt.end() }
    world.timers.advance(by: .milliseconds(999))
    #expect(world.events == [])
    world.timers.advance(by: .milliseconds(1))
    #expect(world.isAnswered)
  }

  @Test func `A shed signal is sent to no process that doesn't handle it`() throws {
    let process = try WorkerProcess.forTest()
    #expect(throws: ShedRefusal.notCaught(signal: SIGUSR1)) {
      try KernelProcesses().signal(process, SIGUSR1, ifHandledIn: ProcessTree(processes: []))
    }
  }

  // MARK: measurements

  @Test func `Shedding is requested when the footprint before it is known`() throws {
    world.source.isSlow = true
    let attempt = try world.begin(.signal(SIGUSR1))
    world.source.footprint = .megabytes(90)
    #expect(world.processes.signals == [])
    world.source.answer()
    #expect(world.processes.signals.count == 1)
    attempt.finish()
    world.source.footprint = .megabytes(80)
    world.source.answer()
    #expect(world.events == [finished(90, 80)])
    try world.begin(.signal(SIGUSR1)).end()
    world.source.answer()
    world.timers.advance(by: .seconds(10))
    #expect(world.processes.signals.count == 1 && world.events.count == 1)
  }

  @Test func `A worker whose footprint isn't known in half of its time is asked`() throws {
    world.source.isSlow = true
    let attempt = try world.begin(.signal(SIGUSR1))
    world.timers.advance(by: .milliseconds(2499))
    #expect(world.processes.signals == [])
    world.timers.advance(by: .milliseconds(1))
    #expect(world.processes.signals == [SIGUSR1])
    world.source.footprint = .megabytes(40)
    world.source.answer()
    #expect(world.processes.signals.count == 1, "once")
    attempt.finish()
    world.source.answer()
    #expect(world.events.last == finished(100, 40))
  }

  @Test func `If the footprint can't be measured, the engine's one is reported`() throws {
    world.source.footprint = nil
    let attempt = try world.begin(nil)
    #expect(world.isAnswered)
    attempt.finish()
    #expect(world.events.last == finished(100, 100))
  }

  @Test(arguments: [true, false])
  func `A worker that wasn't measured or found in time isn't asked`(isMeasured: Bool) throws {
    if isMeasured { world.scans.immediate = nil } else { world.source.isSlow = true }
    try world.begin(.signal(SIGUSR1)).finish()
    #expect(world.events.first == .shedAnswered(world.id), "the watchdog waits for no answer")
    world.timers.advance(by: .seconds(5))
    #expect(world.processes.signals == [])
  }

  // MARK: runs that end

  @Test func `What was measured or found of an ended run is nothing of the next run`() throws {
    world.source.isSlow = true
    _ = try world.begin(.signal(SIGUSR1))
    try world.beginNextRun()
    world.source.answer()
    #expect(world.processes.signals == [])
    world.source.isSlow = false
    world.scans.immediate = nil
    _ = try world.begin(.signal(SIGUSR1))
    try world.beginNextRun()
    world.scans.answer(try ProcessScan.read())
    #expect(world.processes.signals == [] && world.events == [])
  }

  @Test func `A request whose run ends before its last measurement reports nothing`() throws {
    let attempt = try world.begin(nil)
    world.source.isSlow = true
    attempt.finish()
    try world.beginNextRun()
    world.source.answer()
    #expect(world.isAnswered && world.logged == [])
  }

  @Test func `A run that has ended is neither measured nor searched for processes`() throws {
    world.scans.immediate = nil
    let attempt = try world.begin(.signal(SIGUSR1))
    let worker = world.talk.worker
    worker.process = nil
    worker.endRun()
    world.scans.answer(try ProcessScan.read())
    attempt.finish()
    world.timers.advance(by: .seconds(5))
    #expect(world.processes.signals == [] && world.source.count == 1)
  }

  @Test func `A worker that was freed isn't measured, and gets no answer`() throws {
    let workers = world.talk.adapters.workers
    let id = WorkerID("api")
    world.source.isSlow = true
    var worker: WorkerUnit? = try world.talk.adapters.add("api")
    world.sheds.beginShed(id, .memoryWarning, until: world.timers.now + .seconds(5))
    let attempt = try #require(worker?.shed)
    workers[id] = nil
    worker = nil
    world.source.answer()
    attempt.finish()
    world.source.answer()
    #expect(world.events == [.shedAnswered(id)] && world.source.count == 1)
  }

  // MARK: channels

  @Test func `A worker that is in the foreground again gets no message of its background`() throws {
    world.source.isSlow = true
    let attempt = try world.begin(.signal(SIGUSR1), .didEnterBackground)
    world.talk.adapters.driver.request(.foreground, world.id) { _ in }
    world.source.answer()
    #expect(world.processes.signals == [] && world.isAnswered)
    attempt.end()
  }

  @Test func `A shed request without a usable channel counts as answered at once`() throws {
    let unasked = try world.begin(nil)
    #expect(world.isAnswered && world.logged == [])
    unasked.end()
    world.processes.set { $0.shedRefusal = .notCaught(signal: SIGUSR1) }
    let refused = try world.begin(.signal(SIGUSR1))
    #expect(
      world.events.count == 2 && world.logged == ["\(ShedRefusal.notCaught(signal: SIGUSR1))"])
    refused.end()
    world.timers.advance(by: .seconds(10))
    #expect(world.events.count == 2)
  }

  @Test func `The footprint is watched after a shed command, whose failure is logged`() throws {
    let attempt = try world.begin(.command(["/bin/sh", "-c", "exit 1"]))
    #expect(try world.start(attempt))
    world.timers.advance(by: .seconds(3))
    #expect(world.events == [] && world.source.count == 1)
    #expect(try world.end(attempt))
    #expect(world.logged.count == 1 && world.logged[0].hasPrefix("its shed command failed: "))
    world.timers.advance(by: .seconds(1))
    #expect(world.isAnswered)
    attempt.end()
    #expect(world.logged.count == 1, "it has ended")
  }

  @Test func `The end of a shed request ends its command and logs its delay`() throws {
    // The result of the command's thread isn't used.
    let attempt = try world.begin(.command(["/bin/sleep", "60"]))
    #expect(world.loop.watched.count == 1)
    attempt.end()
    attempt.end()
    #expect(world.loop.watched.isEmpty && world.logged.count == 1)
    #expect(
      world.logged[0].hasPrefix(
        "its shed command did not start: its program and files can't be opened within "))
    world.timers.advance(by: .seconds(5))
    #expect(world.events == [])
  }

  // MARK: order

  @Test func `A request for memory that was never begun ends, for the ladder's sake`() throws {
    let nothing = Event.shedFinished(world.id, before: .zero, after: .zero)
    world.sheds.finishShed(world.id)
    #expect(world.events == [nothing])
    world.talk.worker.process = nil
    world.sheds.beginShed(world.id, .memoryWarning, until: world.timers.now + .seconds(5))
    #expect(world.talk.worker.shed == nil)
    world.sheds.finishShed(world.id)
    #expect(world.events == [nothing, nothing])
  }

  @Test func `Each request for memory replaces the one before it`() throws {
    let first = try world.begin(nil)
    let second = try world.begin(nil)
    #expect(second !== first)
    world.sheds.finishShed(world.id)
    #expect(world.talk.worker.shed == nil)
  }
}
