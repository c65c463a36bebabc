import Lifecycle
import Linux
import Policy
import Testing

@testable import Daemon

@Suite("Signals that wait for sleeping workers") struct PendingSignalsTests {
  private final class World {
    let timers = FakeTimers()
    var sleepers: [(id: WorkerID, pid: Int32)] = [(WorkerID("web"), 100)]
    var statuses: [Int32: ProcessStatus] = [100: ProcessStatus(parsing: [])]
    var events: [Event] = []
    private(set) lazy var signals = PendingSignals(
      timers: timers, sleepers: { [unowned self] in sleepers },
      pending: { [unowned self] in
        statuses[$0].map { ($0.pendingForProcess | $0.pendingForThread) & ~$0.ignored }
      },
      send: { [unowned self] in events.append($0) })
  }

  private let world = World()

  private func mask(_ signals: Int32...) -> UInt64 {
    signals.reduce(0) { $0 | 1 << UInt64($1 - 1) }
  }

  private func woken(by signal: Int32) -> Event {
    .wakeNeeded(WorkerID("web"), "signal \(signal)")
  }

  @Test("A signal to a sleeping worker's process or thread wakes it within ten seconds")
  func wakes() {
    world.signals.follow()
    #expect(world.events.isEmpty)
    world.statuses[100]?.pendingForProcess = mask(15)
    world.timers.advance(by: .seconds(10))
    #expect(world.events == [woken(by: 15)])
    world.statuses[100]?.pendingForProcess = 0
    world.statuses[100]?.pendingForThread = mask(10)
    world.timers.advance(by: .seconds(10))
    #expect(world.events == [woken(by: 15), woken(by: 10)])
  }

  @Test("A signal that a sleeping worker ignores, or that has no effect, doesn't wake it")
  func ignored() {
    world.statuses[100]?.pendingForProcess = mask(1, 17, 18, 20, 28)
    world.statuses[100]?.ignored = mask(1)
    world.signals.follow()
    world.timers.advance(by: .seconds(30))
    #expect(world.events.isEmpty)
  }

  @Test("Signals are looked for at all workers that sleep at that time, and not at ended ones")
  func sleepers() {
    world.sleepers = [(WorkerID("gone"), 7), (WorkerID("web"), 100)]
    world.statuses[100]?.pendingForProcess = mask(2)
    world.signals.follow()
    #expect(world.events == [woken(by: 2)])
    world.sleepers = []
    world.timers.advance(by: .seconds(60))
    #expect(world.events.count == 1 && world.timers.pending.count == 1)
  }
}
