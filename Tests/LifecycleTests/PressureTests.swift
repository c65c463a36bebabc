import Lifecycle
import Policy
import Testing

@Suite("The pressure level")
struct PressureTests {
  @Test(
    "The pressure level is the highest whose condition holds; free memory at the limit is enough",
    arguments: [
      (1000, PressureLevel.normal), (150, .normal), (149, .warning), (100, .warning),
      (99, .urgent), (50, .urgent), (49, .critical), (0, .critical),
    ] as [(Int64, PressureLevel)])
  func levels(_ available: Int64, _ level: PressureLevel) {
    var world = World()
    world.read(available: available)
    #expect(world.engine.pressure == level)
  }

  @Test(
    "Free swap counts as available at levels that terminate workers, not at the one that hibernates"
  )
  func swap() {
    var world = World()
    world.read(available: 40, swapFree: 2000)
    #expect(world.engine.pressure == .warning)
    world.read(available: 40, swapFree: 11)
    #expect(world.engine.pressure == .urgent)
    world.read(available: 40, swapFree: 9)
    #expect(world.engine.pressure == .critical)
  }

  @Test func `A policy can leave free swap out of the available memory`() {
    var world = World { $0.pressure.swap = 0 }
    world.read(available: 40, swapFree: 2000)
    #expect(world.engine.pressure == .critical)
  }

  @Test func `Stalls alone raise the pressure level, once they reach the percentage itself`() {
    var world = World()
    world.read(available: 190, some: 9.9, full: 0)
    #expect(world.engine.pressure == .normal)
    world.read(available: 190, some: 10, full: 0)
    #expect(world.engine.pressure == .warning)
    world.read(available: 190, some: 30, full: 10)
    #expect(world.engine.pressure == .critical)
  }

  @Test("While a fifth of the memory is available, stalls alone raise the level to warning at most")
  func stallsWithMemory() {
    var world = World { $0.hibernate.enabled = false }
    world.add(web, size: .megabytes(60), in: .suspended)
    world.read(available: 200, some: 100, full: 100)
    #expect(world.send(.stalled(.critical)).victims.isEmpty)
    #expect(world.engine.pressure == .warning)
    #expect(world.read(available: 199, some: 100, full: 100).victims == ["web"])
    #expect(world.engine.pressure == .critical)
  }

  @Test func `A policy can let stalls count at any available memory`() {
    var world = World { $0.pressure.stallsCountBelow = 100 }
    world.read(available: 1000, some: 100, full: 100)
    #expect(world.engine.pressure == .critical)
  }

  @Test(
    "A worker is terminated only when its level has held for terminate_after, by a later reading")
  func terminatesAfter() {
    var world = World(terminateAfter: .seconds(1)) { $0.hibernate.enabled = false }
    world.add(web, size: .megabytes(60), canShed: true, in: .foreground)
    #expect(world.obey(world.read(available: 40)).deeds.contains("shed web memoryWarning"))
    #expect(world.pass(.milliseconds(999)).victims.isEmpty)
    world.read(available: 900)
    world.read(available: 40)
    #expect(world.pass(.seconds(1)).victims.isEmpty, "it began again, and no reading confirms it")
    #expect(world.read(available: 41).victims == ["web"])
  }

  @Test func `A rise of the pressure level is reported with its reason`() {
    var world = World()
    let directives = world.read(available: 40)
    #expect(
      directives == [
        .pressureChanged(
          from: .normal, to: .critical, why: "40 MB of 1000 MB available, less than 5%")
      ])
  }

  @Test func `The pressure level rises only after a condition has held for sustained_for`() {
    var world = World { $0.pressure.sustainedFor = .seconds(3) }
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

  @Test("The pressure level falls after clear_after, in one step to the level that holds then")
  func falling() {
    var world = World()
    world.read(available: 40)
    world.read(available: 120)
    world.pass(.milliseconds(4999))
    #expect(world.engine.pressure == .critical)
    world.pass(.milliseconds(1))
    #expect(world.engine.pressure == .warning)
  }

  @Test("The pressure level doesn't fall while its condition keeps returning within clear_after")
  func flicker() {
    var world = World()
    world.read(available: 40)
    for _ in 0..<5 {
      world.read(available: 900)
      world.pass(.seconds(4))
      world.read(available: 40)
      world.pass(.seconds(1))
      #expect(world.engine.pressure == .critical)
    }
  }

  @Test func `A stall trigger raises the level at once, until it has been over for clear_after`() {
    var world = World()
    world.read(available: 190)
    world.send(.stalled(.critical))
    #expect(world.engine.pressure == .critical)
    world.read(available: 190)
    world.pass(.seconds(4))
    world.send(.stalled(.critical))
    world.pass(.seconds(9))
    #expect(world.engine.pressure == .critical, "5 s of the stall, then 4 s of falling")
    world.pass(.seconds(1))
    #expect(world.engine.pressure == .normal)
    world.send(.stalled(.urgent))
    #expect(world.engine.pressure == .normal, "urgent has no stall condition")
  }

  @Test(
    "A device's pressure level follows from the workers' footprints, not from the host's memory")
  func device() {
    var world = World { $0.memory = .device(.megabytes(100)) }
    world.add(web, in: .foreground)
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

  @Test(
    "A level that the operator sets holds at once, and falls clear_after after the end of its time")
  func set() {
    var world = World { $0.pressure.sustainedFor = .seconds(3) }
    world.read(available: 900)
    let directives = world.send(.pressureSet(.critical, for: .seconds(30)))
    let reason = "set by `dormouse pressure set critical`; 900 MB of 1000 MB available"
    #expect(directives == [.pressureChanged(from: .normal, to: .critical, why: reason)])
    #expect(world.engine.setPressure?.until == Instant.zero + .seconds(30))
    world.pass(.milliseconds(34_999))
    #expect(world.engine.pressure == .critical)
    #expect(world.engine.setPressure == nil)
    world.pass(.milliseconds(1))
    #expect(world.engine.pressure == .normal)
  }

  @Test func `A pressure level set by the operator doesn't hide a worse measured one`() {
    var world = World()
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

  @Test func `The pressure level follows a new policy at once`() {
    var world = World()
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
