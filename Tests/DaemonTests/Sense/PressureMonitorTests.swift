import Glibc
import Lifecycle
import Linux
import Policy
import Testing

@testable import Daemon

@Suite("The machine's memory, as it is reported to the engine") struct PressureMonitorTests {
  /// A kernel whose numbers and triggers a test sets.
  private final class World {
    let loop = FakeLoop()
    var memory: MemoryInfo? = MemoryInfo(total: 8000, available: 3000, swapFree: 500)
    /// The stall of some task in microseconds; nil if there is no PSI.
    var some: UInt64? = 0
    var full: UInt64 = 0
    /// The stall of the cgroup that limits memory; nil if it has no PSI.
    var groupFull: UInt64?
    var isRefused = false
    private(set) var asked: [String] = []
    private(set) var triggers: [Weak] = []
    private(set) var events: [Event] = []
    let lines = LoggedLines()
    private(set) lazy var monitor = PressureMonitor(
      loop, readings, send: { [unowned self] in events.append($0) }, log: lines.log)

    struct Weak { weak var descriptor: Descriptor? }

    private var readings: PressureMonitor.Readings {
      PressureMonitor.Readings(
        memory: { [unowned self] in memory },
        stall: { [unowned self] group in
          let (some, full) = group == nil ? (some, full) : (groupFull, groupFull ?? 0)
          return some.flatMap {
            PressureStall(parsing: Array("some \(Self.line($0))full \(Self.line(full))".utf8))
          }
        },
        trigger: { [unowned self] (kind, stall, window, group) throws(PressureTriggerError) in
          guard !isRefused, let descriptor = try? EventCounter().descriptor else {
            return try PressureTrigger(kind, stall: stall, window: window, path: "/none").descriptor
          }
          asked.append("\(kind.rawValue) \(stall) of \(window)" + (group.map { " in \($0)" } ?? ""))
          triggers.append(Weak(descriptor: descriptor))
          return descriptor
        })
    }

    private static func line(_ total: UInt64) -> String {
      "avg10=0.00 avg60=0.00 avg300=0.00 total=\(total)\n"
    }

    var open: Int { triggers.count { $0.descriptor != nil } }

    func drainEvents() -> [Event] {
      defer { events = [] }
      return events
    }

    static func policy(
      warning: Stall? = Stall(percent: 10, window: .seconds(2)), critical: Stall? = nil
    ) -> LifecyclePolicy {
      var policy = LifecyclePolicy(name: "test")
      policy.pressure.warning = PressureCondition(someStall: warning)
      policy.pressure.urgent = nil
      policy.pressure.critical = PressureCondition(fullStall: critical)
      return policy
    }
  }

  private let world = World()

  private func isReading(_ event: Event) -> Bool {
    if case .memory = event { true } else { false }
  }

  @Test func `The kernel watches each threshold of the policy, as a share of its window`() {
    world.monitor.follow(
      World.policy(critical: Stall(percent: 2.5, window: .seconds(4))))
    #expect(
      world.asked == [
        "some \(Duration.milliseconds(200)) of \(Duration.seconds(2))",
        "full \(Duration.milliseconds(100)) of \(Duration.seconds(4))",
      ])
    #expect(world.loop.watched.count == 2)
    #expect(world.loop.watched.allSatisfy { $0.interest == .priority })
  }

  @Test func `A new policy's triggers replace the earlier ones, which are closed`() {
    world.monitor.follow(World.policy(critical: Stall(percent: 5, window: .seconds(2))))
    #expect(world.open == 2)
    world.monitor.follow(World.policy())
    #expect(world.loop.watched.count == 1 && world.open == 1)
    // A simulated device has no stalls of its own.
    var device = World.policy()
    device.memory = .device(.gigabytes(1))
    world.monitor.follow(device)
    #expect(world.loop.watched.isEmpty && world.open == 0 && world.asked.count == 3)
  }

  @Test func `An event counts if the stalls have grown by the threshold`() {
    world.some = 5_000_000
    world.monitor.follow(World.policy())
    // The kernel wrongly sends a first event for the stalls since boot.
    world.some = 5_000_001
    world.loop.fire()
    var events = world.drainEvents()
    #expect(events.count == 1 && isReading(events[0]))
    world.some = 5_200_000
    world.loop.fire()
    events = world.drainEvents()
    #expect(events.first == .stalled(.warning) && events.count == 2 && isReading(events[1]))
    // The stall counts from the last true event on.
    world.some = 5_399_999
    world.loop.fire()
    #expect(world.drainEvents().count == 1)
    world.some = 5_400_000
    world.loop.fire()
    #expect(world.drainEvents().first == .stalled(.warning))
  }

  @Test func `Each level has its own trigger, and its own kind of stall`() {
    world.monitor.follow(World.policy(critical: Stall(percent: 10, window: .seconds(2))))
    world.some = 1_000_000
    world.loop.fire(1)
    #expect(
      !world.drainEvents().contains(.stalled(.critical)), "all tasks were never stalled at once")
    world.full = 300_000
    world.loop.fire(1)
    #expect(world.drainEvents().first == .stalled(.critical))
    world.loop.fire(0)
    #expect(world.drainEvents().first == .stalled(.warning))
  }

  @Test func `Where the kernel's count can't be read, each event of a trigger counts`() {
    world.some = nil
    world.monitor.follow(World.policy())
    world.loop.fire()
    #expect(world.drainEvents().first == .stalled(.warning))
    #expect(world.monitor.lastStall == nil && world.monitor.stalledMicroseconds == nil)
  }

  @Test func `A kernel that refuses triggers is logged, and memory is still sampled`() {
    world.isRefused = true
    world.monitor.follow(World.policy())
    #expect(world.loop.watched.isEmpty && world.lines.all.count == 1)
    #expect(
      world.lines.all[0].hasPrefix(
        "notice: memory stalls are sampled once a second: no PSI trigger: "))
    world.monitor.sendReading()
    #expect(world.drainEvents().count == 1)
    // A trigger that can't be watched is closed.
    world.isRefused = false
    world.loop.refusal = EINVAL
    world.monitor.follow(World.policy())
    #expect(world.open == 0 && world.lines.all.count == 2)
  }

  @Test func `A reading has the memory, and the share of the window in which tasks were stalled`() {
    world.monitor.follow(World.policy())
    world.monitor.sendReading()
    var expected = MemoryReading(
      total: ByteCount(8000), available: ByteCount(3000), swapFree: ByteCount(500))
    #expect(world.drainEvents() == [.memory(expected)], "no share is known before the second look")
    world.some = 200_000
    world.full = 50_000
    world.loop.advance(by: .seconds(2))
    world.memory?.available = 2000
    world.monitor.sendReading()
    expected.available = ByteCount(2000)
    (expected.someStall, expected.fullStall) = (10, 2.5)
    #expect(world.drainEvents() == [.memory(expected)])
    #expect(world.monitor.lastStall?.some == 10 && world.monitor.lastStall?.full == 2.5)
    #expect(world.monitor.stalledMicroseconds == 200_000)
    // Without /proc there is nothing to report.
    world.memory = nil
    world.monitor.sendReading()
    #expect(world.drainEvents().isEmpty)
  }

  @Test func `A cgroup that limits memory is logged, and its stalls count, too`() {
    world.groupFull = 0
    world.monitor.follow(World.policy(critical: Stall(percent: 5, window: .seconds(2))))
    #expect(world.asked.count == 2)
    world.memory?.limitedBy = "/groups/a"
    world.monitor.sendReading()
    #expect(world.monitor.limitedBy == "/groups/a")
    #expect(world.lines.all == ["notice: memory is limited to 7.8 KB: by the cgroup /groups/a"])
    #expect(world.asked.count == 6 && world.asked.count { $0.hasSuffix(" in /groups/a") } == 2)
    #expect(world.open == 4 && world.loop.watched.count == 4)
    _ = world.drainEvents()
    // All tasks of the group waited for a fourth of the window, while other tasks of the machine
    // ran.
    world.groupFull = 500_000
    world.loop.advance(by: .seconds(2))
    world.monitor.sendReading()
    guard case .memory(let reading)? = world.drainEvents().first else {
      Issue.record("no reading")
      return
    }
    #expect(reading.fullStall == 25 && reading.someStall == 0)
    world.groupFull = 1_000_000
    world.loop.fire(3)
    #expect(world.drainEvents().first == .stalled(.critical))
    // The limit is removed.
    world.memory?.limitedBy = nil
    world.monitor.sendReading()
    #expect(world.monitor.limitedBy == nil && world.open == 2 && world.lines.all.count == 2)
  }
}
