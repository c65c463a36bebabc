import Lifecycle
import Policy
import Testing

/// The rules are those of the talks about the phones (WWDC 2009, 416; WWDC 2011, 318).
@Suite("ios-5, as it is shipped")
struct IOS5PolicyTests {
  /// A world with a worker in the foreground and one in the background, which can be warned, and
  /// two that sleep.
  private func world(hibernates: Bool = false) throws -> World {
    var policy = try shipped("ios-5")
    policy.hibernate.enabled = hibernates
    var world = World(policy)
    for (worker, state) in [
      (mail, WorkerState.suspended), (maps, .suspended), (WorkerID("music"), .background),
      (web, .foreground),
    ] {
      world.add(worker, size: .megabytes(worker == maps ? 30 : 20), canShed: true, in: state)
    }
    return world
  }

  /// Keeps memory short until no worker can free any; each termination helps a little.
  private func exhaust(_ world: inout World) -> [String] {
    var deeds: [String] = []
    for round in 0..<12 {
      deeds += world.obey(world.read(available: 10 + Int64(round) * 4)).deeds
      deeds += world.live(.milliseconds(500)).deeds
    }
    return deeds.filter { !$0.hasPrefix("finish") && !$0.hasSuffix("didEnterBackground") }
  }

  @Test("Policy ios-5 terminates suspended workers before it warns any, and repeats no warning")
  func order() throws {
    var world = try world()
    #expect(
      exhaust(&world) == [
        "terminate maps", "terminate mail", "shed music memoryWarning", "shed web memoryWarning",
        "terminate music", "terminate web",
      ])
  }

  @Test("Policy ios-5 hibernates sleepers and then running workers of any size, and ends none")
  func largeSleepers() throws {
    var world = try world(hibernates: true)
    #expect(
      exhaust(&world) == [
        "hibernate maps", "hibernate mail", "shed music memoryWarning", "shed web memoryWarning",
        "suspend music", "hibernate music", "suspend web", "hibernate web",
      ])
    #expect(world.state(maps) == .hibernated && world.state(mail) == .hibernated)
  }

  @Test func `The smaller of two otherwise equal suspended workers survives`() throws {
    var world = try world()
    world.obey(world.read(available: 40))
    world.read(available: 900)
    #expect(world.state(maps) == .terminated && world.state(mail) == .suspended)
  }

  @Test func `A short stall raises the level although the average is low`() throws {
    var world = try world()
    world.read(available: 190, some: 1, full: 0)
    world.send(.stalled(.critical))
    world.read(available: 190, some: 3, full: 2)
    #expect(world.engine.pressure == .critical, "the averages may not include it yet")
    #expect(world.state(maps) == .terminating)
    world.pass(.seconds(2))
    world.read(available: 190, some: 3, full: 2)
    world.pass(.seconds(5))
    #expect(world.engine.pressure == .normal, "and it is over")
  }

  @Test(
    "Both policies of phones terminate a worker that isn't ready 20 s after its launch",
    arguments: ["ios-5", "iphone-os-3"])
  func launch(policy: String) throws {
    var world = World(try shipped(policy))
    world.add(web, announcesReadiness: true)
    world.ask(.start, web)
    world.send(.launched(web))
    #expect(world.pass(.milliseconds(19_999)).deeds.isEmpty)
    #expect(world.pass(.milliseconds(1)).deeds == ["failed", "terminate web"])
  }

  @Test("Policy ios-5 hibernates workers of up to 16 MB, and leaves larger ones suspended")
  func freezer() throws {
    for (size, state) in [(Int64(16), WorkerState.hibernated), (17, .suspended)] {
      var world = World(try shipped("ios-5"))
      world.add(web, size: .megabytes(size), in: .background)
      world.live(.seconds(40))
      #expect(world.state(web) == state)
    }
  }
}

@Suite("iphone-os-3, as it is shipped")
struct IPhoneOS3PolicyTests {
  private func world() throws -> World {
    var world = World(try shipped("iphone-os-3"))
    for (worker, state) in [(mail, WorkerState.background), (web, .foreground)] {
      world.add(worker, size: .megabytes(20), canShed: true, in: state)
    }
    world.pass(.seconds(60))
    return world
  }

  @Test("Policy iphone-os-3 warns all workers, then terminates the background, then the foreground")
  func threeLevels() throws {
    var world = try world()
    let first = world.obey(world.read(available: 149)).deeds
    #expect(first.filter { $0.hasPrefix("shed") }.count == 2 && world.state(mail) == .background)
    world.pass(.milliseconds(500))
    #expect(world.obey(world.read(available: 99)).deeds == ["terminate mail"])
    world.pass(.milliseconds(500))
    #expect(
      world.read(available: 60).deeds.isEmpty, "the foreground worker stays at the second level")
    world.pass(.milliseconds(500))
    #expect(world.read(available: 49).deeds == ["terminate web"])
  }

  @Test("Policy iphone-os-3 spares the foreground at 5 % of free memory, and terminates it below")
  func lastLine() throws {
    var world = try world()
    world.obey(world.ask(.terminate, mail))
    world.obey(world.read(available: 50))
    world.live(.seconds(60))
    #expect(world.state(web) == .foreground)
    world.read(available: 49)
    #expect(world.state(web) == .terminating)
  }

  @Test func `Policy iphone-os-3 never suspends or hibernates a worker`() throws {
    var world = try world()
    world.live(.seconds(86_400))
    #expect(world.state(mail) == .background)
  }
}

@Suite("android, as it is shipped")
struct AndroidPolicyTests {
  private func world(
    _ sizes: [(WorkerID, Int64)], hibernates: Bool = true
  ) throws -> World {
    var policy = try shipped("android")
    policy.hibernate.enabled = hibernates
    var world = World(policy)
    for (worker, size) in sizes {
      world.add(worker, size: .megabytes(size), canShed: true, in: .background)
      world.pass(.seconds(1))
    }
    return world
  }

  @Test func `Policy android suspends a worker ten seconds after it left the foreground`() throws {
    var world = try world([(web, 20)])
    world.live(.milliseconds(8999))
    #expect(world.state(web) == .background)
    world.live(.milliseconds(1))
    #expect(world.state(web) == .suspended)
  }

  @Test("Policy android hibernates no worker of less than 12 MB, and has no upper limit")
  func floor() throws {
    var world = try world([(web, 800), (mail, 11)])
    world.live(.seconds(60))
    #expect(world.state(web) == .hibernated && world.state(mail) == .suspended)
  }

  @Test func `Policy android warns each worker once at each level`() throws {
    var world = World(try shipped("android"))
    world.add(web, size: .megabytes(20), canShed: true, in: .foreground)
    var warnings: [String] = []
    for available in [Int64(140), 130, 90, 80, 45, 44] {
      let deeds = world.obey(world.read(available: available)).deeds
      warnings += deeds.filter { $0 == "shed web memoryWarning" }
      world.live(.milliseconds(500))
    }
    #expect(warnings.count == 3)
  }

  @Test(
    "Policy android follows stalls: a few raise the level to warning, and full stalls end a worker")
  func stalls() throws {
    var world = try world([(mail, 8), (maps, 8)], hibernates: false)
    world.live(.seconds(20))
    world.obey(world.read(available: 900, some: 8, full: 0))
    #expect(world.engine.pressure == .warning && world.state(mail) == .suspended)
    world.pass(.milliseconds(500))
    let deeds = world.read(available: 190, some: 90, full: 75).deeds
    #expect(deeds == ["terminate mail", "kill mail"], "the least recently used of the cached")
    #expect(world.pass(.zero).deeds.isEmpty && world.state(maps) == .suspended)
  }

  @Test func `Policy android terminates cached workers before perceptible ones`() throws {
    var world = try world([(mail, 8)])
    world.add(WorkerID("music"), size: .megabytes(60), importance: 80, in: .background)
    world.send(.hold(WorkerID("music"), true))
    world.live(.seconds(20))
    #expect(world.engine.terminationOrder().map(\.name) == ["mail", "music"])
  }
}
