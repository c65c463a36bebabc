import Lifecycle
import Policy
import Testing

@Suite("The pressure level")
struct PressureTests {
  private func world(_ change: (inout LifecyclePolicy) -> Void = { _ in }) -> World {
    var policy = LifecyclePolicy()
    change(&policy)
    return World(policy)
  }

  @Test(
    "is the highest whose condition holds; the limit itself is still above it",
    arguments: [
      (1000, PressureLevel.normal), (150, .normal), (149, .warning), (100, .warning),
      (99, .urgent), (50, .urgent), (49, .critical), (0, .critical),
    ] as [(Int64, PressureLevel)])
  func levels(_ available: Int64, _ level: PressureLevel) {
    var world = world()
    world.read(available: available)
    #expect(world.engine.pressure == level)
  }

  @Test(
    "free swap counts at the levels that end workers, and not at the one that puts them to sleep")
  func swap() {
    var world = world()
    world.read(available: 40, swapFree: 2000)
    #expect(world.engine.pressure == .warning)
    world.read(available: 40, swapFree: 11)
    #expect(world.engine.pressure == .urgent)
    world.read(available: 40, swapFree: 9)
    #expect(world.engine.pressure == .critical)
  }

  @Test("a policy can leave free swap out")
  func withoutSwap() {
    var world = world { $0.pressure.swap = 0 }
    world.read(available: 40, swapFree: 2000)
    #expect(world.engine.pressure == .critical)
  }

  @Test("rises with stalls alone, at the percentage itself")
  func stalls() {
    var world = world()
    world.read(available: 900, some: 9.9, full: 0)
    #expect(world.engine.pressure == .normal)
    world.read(available: 900, some: 10, full: 0)
    #expect(world.engine.pressure == .warning)
    world.read(available: 900, some: 30, full: 10)
    #expect(world.engine.pressure == .critical)
  }

  @Test("tells its rise with the reason")
  func reason() {
    var world = world()
    let told = world.read(available: 40)
    #expect(
      told == [
        .pressureChanged(
          from: .normal, to: .critical, why: "40 MB of 1000 MB available, less than 5%")
      ])
  }

  @Test("rises only when a condition lasts")
  func sustained() {
    var world = world { $0.pressure.sustainedFor = .seconds(3) }
    world.read(available: 40)
    world.pass(.seconds(2))
    world.read(available: 900)
    world.pass(.seconds(10))
    #expect(world.engine.pressure == .normal)
    world.read(available: 120)
    world.pass(.seconds(2))
    world.read(available: 40)
    world.pass(.seconds(1))
    #expect(world.engine.pressure == .warning, "critical has held for one second only")
    world.pass(.seconds(2))
    #expect(world.engine.pressure == .critical)
  }

  @Test("falls after clear_after, straight to what holds then")
  func falling() {
    var world = world()
    world.read(available: 40)
    world.read(available: 120)
    world.pass(.milliseconds(4999))
    #expect(world.engine.pressure == .critical)
    world.pass(.milliseconds(1))
    #expect(world.engine.pressure == .warning)
  }

  @Test("doesn't fall while its condition comes and goes")
  func flicker() {
    var world = world()
    world.read(available: 40)
    for _ in 0..<5 {
      world.read(available: 900)
      world.pass(.seconds(4))
      world.read(available: 40)
      world.pass(.seconds(1))
      #expect(world.engine.pressure == .critical)
    }
  }

  @Test("believes a trigger until a reading gainsays it, or clear_after")
  func trigger() {
    var world = world()
    world.read(available: 900)
    world.send(.stalled(.critical))
    #expect(world.engine.pressure == .critical)
    world.read(available: 900)
    world.pass(.seconds(4))
    world.send(.stalled(.critical))
    world.pass(.seconds(9))
    #expect(world.engine.pressure == .critical, "5 s of the stall, then 4 s of falling")
    world.pass(.seconds(1))
    #expect(world.engine.pressure == .normal)
    world.send(.stalled(.urgent))
    #expect(world.engine.pressure == .normal, "urgent has no stall condition")
  }

  @Test("of a device comes from the workers' footprints, not from the host")
  func device() {
    var world = world { $0.memory = .device(.megabytes(100)) }
    world.add(web)
    world.bring(web, to: .foreground)
    #expect(world.engine.budget == .megabytes(100))
    #expect(world.engine.available == .megabytes(92))
    world.read(available: 1, some: 100, full: 100)
    world.send(.stalled(.critical))
    #expect(world.engine.pressure == .normal)
    world.send(.footprint(web, .megabytes(92)))
    #expect(world.engine.pressure == .urgent)
    world.send(.footprint(web, .megabytes(300)))
    #expect(world.engine.available == .zero)
    world.send(.exited(web, .signaled(9)))
    #expect(world.engine.available == .megabytes(100))
  }

  @Test("that somebody sets rises at once, and falls by itself after clear_after")
  func set() {
    var world = world { $0.pressure.sustainedFor = .seconds(3) }
    world.read(available: 900)
    let told = world.send(.pressureSet(.critical, for: .seconds(30)))
    let why = "set by `dormouse pressure set critical`; 900 MB of 1000 MB available"
    #expect(told == [.pressureChanged(from: .normal, to: .critical, why: why)])
    #expect(world.engine.setPressure?.until == Instant.zero + .seconds(30))
    world.pass(.milliseconds(34_999))
    #expect(world.engine.pressure == .critical)
    #expect(world.engine.setPressure == nil)
    world.pass(.milliseconds(1))
    #expect(world.engine.pressure == .normal)
  }

  @Test("that somebody sets doesn't hide a worse one")
  func setUnderMeasured() {
    var world = world()
    world.send(.pressureSet(.warning, for: .seconds(30)))
    world.read(available: 40)
    #expect(world.engine.pressure == .critical)
    world.read(available: 900)
    world.pass(.seconds(5))
    #expect(world.engine.pressure == .warning)
    world.send(.pressureSet(.normal, for: .zero))
    world.pass(.seconds(5))
    #expect(world.engine.pressure == .normal)
  }

  @Test("follows a new policy at once")
  func newPolicy() {
    var world = world()
    world.read(available: 120)
    #expect(world.engine.pressure == .warning)
    var policy = LifecyclePolicy()
    policy.pressure.critical = PressureCondition(availableBelow: .percent(20))
    world.engine.setPolicy(policy)
    #expect(world.engine.nextDeadline == world.now)
    world.pass(.zero)
    #expect(world.engine.pressure == .critical)
  }
}
