import Lifecycle
import Policy
import Testing

@Suite("Several workers that are started at once")
struct StartedFrontTests {
  private let names = ["a", "b", "c"].map { WorkerID($0) }

  /// Starts all workers in the order of their names. They become ready in `order`.
  private func world(_ order: [Int], front: Int) -> World {
    var world = World { $0.foreground.max = front }
    for name in names { world.add(name, announcesReadiness: true) }
    for name in names {
      world.now = world.now + .nanoseconds(1)
      world.ask(.start, name)
    }
    for index in order {
      world.now = world.now + .seconds(1)
      world.send(.launched(names[index]))
      world.obey(world.send(.ready(names[index])))
    }
    return world
  }

  private static let orders = [
    [0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0],
  ]

  @Test(
    "Of workers started together the last requested gets the foreground, whichever is ready first",
    arguments: orders, [1, 2])
  func last(_ order: [Int], _ front: Int) {
    let world = world(order, front: front)
    let states = names.map { world.state($0) }
    #expect(states == [.background, front == 1 ? .background : .foreground, .foreground])
    for request in 1...3 {
      #expect(world.answers[Request.ID(request)]?.map(\.code) == [.done])
    }
  }

  @Test func `A start that waited for other workers counts from the moment of its request`() {
    var world = World()
    for name in names { world.add(name) }
    world.now = Instant(nanoseconds: 10)
    world.obey(world.ask(.start, names[1]))
    world.now = Instant(nanoseconds: 20)
    world.requests += 1
    world.obey(
      world.send(
        .request(
          Request(
            id: world.requests, verb: .start, worker: names[0], asked: Instant(nanoseconds: 5)))))
    #expect(names.map { world.state($0) } == [.background, .foreground, .terminated])
    #expect(world.engine.snapshot(of: names[0], at: world.now)?.cause == .displaced(by: names[1]))
  }

  @Test func `A worker that the operator chose during another's launch keeps the foreground`() {
    var world = World()
    world.add(names[0])
    world.obey(world.ask(.start, names[0]))
    world.obey(world.ask(.background, names[0]))
    world.add(names[1], announcesReadiness: true)
    world.now = world.now + .seconds(1)
    world.ask(.start, names[1])
    world.now = world.now + .seconds(1)
    world.obey(world.ask(.foreground, names[0]))
    world.now = world.now + .seconds(1)
    world.send(.launched(names[1]))
    world.obey(world.send(.ready(names[1])))
    #expect(world.state(names[0]) == .foreground && world.state(names[1]) == .background)
    // A later request brings the same worker to the foreground.
    world.obey(world.ask(.foreground, names[1]))
    #expect(world.state(names[0]) == .background && world.state(names[1]) == .foreground)
  }
}
