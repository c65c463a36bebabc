import Lifecycle
import Policy
import Testing

@Suite("server, as it is shipped")
struct ServerPolicyTests {
  private func world() throws -> World {
    var world = World(try shipped("server"))
    world.add(web, size: .megabytes(100), in: .foreground)
    return world
  }

  @Test(
    "Policy server hibernates a service without traffic; a connection brings it to the foreground")
  func sleepsAndWakes() throws {
    var world = try world()
    world.live(.seconds(60))
    #expect(world.state(web) == .background)
    world.live(.seconds(30))
    #expect(world.state(web) == .suspended)
    world.live(.seconds(120))
    #expect(world.state(web) == .hibernated)
    world.obey(world.send(.wakeNeeded(web, "a connection")))
    #expect(world.state(web) == .foreground)
  }

  @Test func `Policy server ignores a memory peak of under a second`() throws {
    var world = try world()
    world.read(available: 40)
    world.pass(.milliseconds(900))
    world.read(available: 400)
    world.pass(.seconds(5))
    #expect(world.engine.pressure == .normal && world.state(web) == .foreground)
  }

  @Test func `Policy server lets a worker that misses the readiness deadline run`() throws {
    var world = World(try shipped("server"))
    world.add(web, announcesReadiness: true)
    world.ask(.start, web)
    world.send(.launched(web))
    world.pass(.seconds(60))
    #expect(world.state(web) == .launching)
  }
}

@Suite("developer, as it is shipped")
struct DeveloperPolicyTests {
  private func world(size: Int64 = 1500) throws -> World {
    var world = World(try shipped("developer"))
    world.add(web, size: .megabytes(size), canShed: true, canAnswer: true, in: .foreground)
    return world
  }

  @Test(
    "Policy developer hibernates a language server of any size, and data at its stdin resumes it")
  func large() throws {
    var world = try world()
    world.live(.seconds(120))
    #expect(world.state(web) == .background)
    world.live(.seconds(30))
    #expect(world.state(web) == .suspended)
    world.live(.seconds(300))
    #expect(world.state(web) == .hibernated)
    world.obey(world.send(.wakeNeeded(web, "data at its standard input")))
    #expect(world.state(web) == .foreground)
  }

  @Test("Policy developer hibernates no worker within five minutes of its wake, at any pressure")
  func cooldown() throws {
    var world = try world()
    world.live(.seconds(450))
    world.obey(world.send(.wakeNeeded(web, "data")))
    world.live(.seconds(180))
    #expect(world.state(web) == .suspended)
    world.read(available: 190)
    world.pass(.seconds(2))
    #expect(world.engine.pressure == .warning && world.state(web) == .suspended)
    world.live(.seconds(200))
    #expect(world.state(web) == .hibernated)
  }

  @Test func `Policy developer doesn't end a worker that never answers`() throws {
    var world = try world()
    world.ask(.background, web)
    #expect(!world.pass(.seconds(60)).deeds.contains("terminate web"))
    #expect(world.engine.snapshot(of: web)?.lastMiss != nil)
  }

  @Test("Policy developer waits a minute for a file lock before it suspends the holder")
  func locks() throws {
    var world = try world()
    world.locks[web] = 1
    world.live(.seconds(209))
    #expect(world.state(web) == .background)
    world.live(.seconds(1))
    #expect(world.state(web) == .suspended)
  }
}
