import DaemonFakes
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("Signals that wait for sleeping workers") struct PendingSignalsTests {
  private final class World {
    let timers = FakeLoop()
    var sleepers: [(id: WorkerID, pid: Int32)] = [(WorkerID("web"), 100)]
    var waiting: [Int32: WaitingSignals] = [100: WaitingSignals(unheeded: 0, counted: nil)]
    var namespaces: [Int32: UInt64] = [:]
    var afterRead: (Int32) -> Void = { _ in }
    /// The pids whose signals were read since this was last emptied.
    var reads: [Int32] = []
    var events: [Event] = []
    private(set) lazy var signals = PendingSignals(
      timers: timers, sleepers: { [unowned self] in sleepers },
      pending: { [unowned self] in
        reads.append($0)
        let signalsOfProcess = waiting[$0]
        afterRead($0)
        return signalsOfProcess
      },
      namespace: { [unowned self] in namespaces[$0] },
      send: { [unowned self] in events.append($0) })

    /// Lets workers of one user sleep whose signals the kernel counts together, with pids from 100.
    func sleep(_ count: Int32, counted: UInt64? = 0) {
      sleepers = (0..<count).map { (WorkerID("w\($0)"), 100 + $0) }
      for (_, pid) in sleepers {
        waiting[pid] = WaitingSignals(unheeded: 0, counted: counted, user: 1000)
        namespaces[pid] = 7
      }
    }

    func send(_ signal: Int32, to pid: Int32) {
      waiting[pid]?.unheeded |= 1 << UInt64(signal - 1)
      let user = waiting[pid]?.user
      for other in waiting.keys where waiting[other]?.user == user { waiting[other]?.counted? += 1 }
    }

    func round() -> [Int32] {
      reads = []
      timers.advance(by: .seconds(10))
      return reads
    }
  }

  private let world = World()

  private func mask(_ signals: Int32...) -> UInt64 {
    signals.reduce(0) { $0 | 1 << UInt64($1 - 1) }
  }

  private func woken(_ worker: String = "web", by signal: Int32) -> Event {
    .wakeNeeded(WorkerID(worker), Signals.text(signal))
  }

  @Test func `A signal to a sleeping worker wakes it within ten seconds`() {
    world.signals.follow()
    #expect(world.events.isEmpty)
    world.waiting[100]?.unheeded = mask(15)
    world.timers.advance(by: .seconds(10))
    #expect(world.events == [woken(by: 15)])
    world.waiting[100]?.unheeded = mask(10)
    world.timers.advance(by: .seconds(10))
    #expect(world.events == [woken(by: 15), woken(by: 10)])
  }

  @Test func `A signal that has no effect on a program doesn't wake a sleeping worker`() {
    world.waiting[100]?.unheeded = mask(17, 18, 20, 28)
    world.signals.follow()
    world.timers.advance(by: .seconds(30))
    #expect(world.events.isEmpty)
  }

  @Test func `A blocked signal that a worker leaves pending wakes it only once`() throws {
    let program = "import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, [10]); "
    let child = try SpawnedProcess.forTest([
      "/bin/sh", "-c", "exec python3 -c '\(program) signal.raise_signal(10); time.sleep(1000)'",
    ])
    defer { child.endForTest() }
    let isPending = try eventually {
      try ProcessStatus.contains(WaitingSignals.read(child.pid).unheeded, 10)
    }
    try #require(isPending)
    var job = SuspendJob(
      target: HibernationTarget(name: "web", root: child.identity, session: child.pid),
      daemonSockets: [], unreadBaseline: UnreadInputBaseline(), dependsOnInputs: false)
    job.mustBeIdle = false
    let asleep = try job.run()
    #expect(asleep.blockedPending == mask(10))

    let world = try SleepWorld(.suspended)
    world.workers[world.id] = world.worker
    world.worker.process = try .forTest(child.identity)
    let watch = world.makeWatch()
    // A worker that is suspended while it is busy may not have read it yet.
    watch.recordPending(asleep.blockedPending)
    #expect(watch.leftPending == 0)
    watch.recordPending(asleep.blockedPending)
    let signals = PendingSignals(
      timers: world.timers, driver: world.driver, workers: world.workers)
    signals.follow()
    #expect(world.wakes.isEmpty)
    watch.recordPending(0)
    world.timers.advance(by: .seconds(60))
    #expect(world.wakes.first == Signals.text(10))
  }

  @Test func `All workers that sleep at that time are checked for signals, ended ones aren't`() {
    world.sleepers = [(WorkerID("gone"), 7), (WorkerID("web"), 100)]
    world.waiting[100]?.unheeded = mask(2)
    world.signals.follow()
    #expect(world.events == [woken(by: 2)])
    world.sleepers = []
    world.timers.advance(by: .seconds(60))
    #expect(world.events.count == 1 && world.timers.pending.count == 1)
  }

  @Test func `One worker of a user is read while the user's count of signals is unchanged`() {
    world.sleep(5, counted: 2)
    world.signals.follow()
    #expect(world.reads == [100, 101, 102, 103, 104])
    for _ in 0..<5 { #expect(world.round() == [100]) }
    // Once a minute, all are read.
    #expect(world.round() == [100, 101, 102, 103, 104])
    #expect(world.round() == [100])
  }

  @Test func `After a changed count, all workers of that user are read at once`() {
    world.sleep(5)
    world.waiting[104]?.user = 1001
    world.signals.follow()
    #expect(world.round() == [100, 104])
    world.send(15, to: 102)
    #expect(world.round() == [100, 101, 102, 103, 104])
    #expect(world.events == [woken("w2", by: 15)])
    #expect(world.round() == [100, 104])
  }

  @Test func `A signal that comes after its process was checked is found in the next round`() {
    world.sleep(3)
    world.afterRead = { [world] in if $0 == 101 { world.send(12, to: 101) } }
    world.signals.follow()
    world.afterRead = { _ in }
    #expect(world.events.isEmpty)
    #expect(world.round() == [100, 101, 102])
    #expect(world.events == [woken("w1", by: 12)])
  }

  @Test func `A worker that has just fallen asleep is checked even if the count is unchanged`() {
    world.sleep(3)
    world.signals.follow()
    let all = world.sleepers
    world.sleepers = [all[0], all[1]]
    #expect(world.round() == [100])
    world.sleepers = all
    #expect(world.round() == [100, 102])
    #expect(world.round() == [100])
  }

  @Test(arguments: [true, false])
  func `Without a known count or namespace, each worker is read each time`(hasCount: Bool) {
    world.sleep(3, counted: hasCount ? 0 : nil)
    if hasCount { world.namespaces = [100: 7, 102: 8] }
    world.signals.follow()
    #expect(world.round() == [100, 101, 102])
    #expect(world.round() == [100, 101, 102])
  }
}
