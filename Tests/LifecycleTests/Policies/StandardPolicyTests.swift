import Lifecycle
import Policy
import Testing

@Suite("standard, as it is shipped")
struct StandardPolicyTests {
  private func world(size: Int64 = 8) throws -> World {
    var world = World(try shipped("standard"))
    world.add(web, size: .megabytes(size), in: .foreground)
    return world
  }

  @Test("Policy standard hibernates a worker of up to 16 MB as soon as it is suspended")
  func small() throws {
    var world = try world(size: 16)
    world.live(.seconds(59))
    #expect(world.state(web) == .background)
    world.live(.seconds(1))
    #expect(world.state(web) == .hibernated)
    world.obey(world.send(.wakeNeeded(web, "a connection")))
    #expect(world.state(web) == .foreground)
  }

  @Test("Policy standard hibernates a larger worker, of any size, two minutes after its suspension")
  func large() throws {
    for size: Int64 in [17, 3000] {
      var world = try world(size: size)
      world.live(.seconds(60))
      #expect(world.state(web) == .suspended)
      #expect(world.verdict(web)?.contains("hibernate.after") == true)
      world.live(.seconds(119))
      #expect(world.state(web) == .suspended)
      world.live(.seconds(1))
      #expect(world.state(web) == .hibernated)
    }
  }

  @Test("Policy standard leaves a small worker in memory for a time if it is always needed soon")
  func neededSoon() throws {
    var world = try world()
    var times: [Duration] = []
    for _ in 0..<8 {
      world.live(.seconds(60))
      let start = world.now
      while world.state(web) != .hibernated, world.now < start + .seconds(600) {
        world.live(.milliseconds(500))
      }
      times.append(world.now - start)
      world.live(.seconds(5))
      world.obey(world.send(.wakeNeeded(web, "a connection")))
    }
    #expect(times[0] == .zero && times[1] == .zero)
    #expect(times[7] > .seconds(120), "\(times)")
  }

  @Test func `Policy standard ends no worker before memory is nearly used up`() throws {
    var world = try world(size: 100)
    for available: Int64 in [140, 90, 60] {
      world.read(available: available)
      world.live(.seconds(5))
      #expect(![.terminating, .terminated].contains(world.state(web)), "\(available) MB")
    }
  }
}
