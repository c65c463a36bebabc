import Lifecycle
import Policy
import Testing

@Suite("A worker that is started again")
struct RestartedFrontTests {
  private let other = WorkerID("other")

  private func world() -> World {
    var world = World()
    for worker in [other, web] { world.add(worker, in: .foreground) }
    #expect(world.state(web) == .foreground && world.state(other) == .background)
    return world
  }

  @Test("A restarted worker stays in the background while another worker is in the foreground")
  func background() {
    var world = world()
    world.send(.exited(other, .signaled(11)))
    world.obey(world.ask(.restart, other))
    #expect(world.state(other) == .background && world.state(web) == .foreground)
    #expect(world.answers[world.requests]?.first?.code == .done)
  }

  @Test func `A restarted worker returns to the foreground only if it was there before`() {
    var world = world()
    world.send(.exited(web, .signaled(11)))
    world.send(.exited(other, .signaled(11)))
    world.obey(world.ask(.restart, other))
    #expect(world.state(other) == .background)
    world.obey(world.ask(.restart, web))
    #expect(world.state(web) == .foreground)
  }

  @Test func `A restarted worker leaves the foreground to a worker that entered it meanwhile`() {
    var world = world()
    world.send(.exited(web, .signaled(11)))
    world.obey(world.ask(.foreground, other))
    world.obey(world.ask(.restart, web))
    #expect(world.state(web) == .background && world.state(other) == .foreground)
  }

  @Test(
    "A restarted worker returns to the foreground after a stop, and after a crash during its launch"
  )
  func stopped() {
    var world = world()
    world.obey(world.ask(.stop, web))
    world.ask(.restart, web)
    world.send(.exited(web, .exited(1)))
    world.obey(world.ask(.restart, web))
    #expect(world.state(web) == .foreground)
  }

  @Test("A worker that the operator starts takes the foreground, even if it is still ending")
  func personsStart() {
    var world = world()
    world.ask(.stop, other)
    world.ask(.start, other)
    world.obey(world.send(.exited(other, .exited(0))))
    #expect(world.state(other) == .foreground && world.state(web) == .background)
  }

  @Test
  func `A worker is adopted in the foreground where there is room, otherwise in the background`() {
    var world = World()
    world.obey(world.adopt(web, in: .foreground))
    #expect(world.state(web) == .foreground)
    world.live(.seconds(600))
    #expect(world.state(web) == .foreground)
    world.obey(world.adopt(other, in: .foreground))
    #expect(world.state(web) == .foreground && world.state(other) == .background)
  }
}
