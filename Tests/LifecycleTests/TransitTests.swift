import Lifecycle
import Policy
import Testing

@Suite("A worker whose outcome is lost")
struct TransitTests {
  private func world(in state: WorkerState) -> World {
    var world = World()
    world.add(web, in: state)
    return world
  }

  /// Passes the deadline. The daemon is asked for the worker's state.
  private func overdue(_ state: WorkerState) -> World {
    var world = world(in: state)
    #expect(world.pass(.seconds(29)).deeds.isEmpty)
    let asked = world.pass(.seconds(2))
    #expect(asked.deeds == ["inspect web"])
    #expect(asked.brief.contains("missed web"), "the delay is reported")
    return world
  }

  @Test(
    "A worker whose outcome is lost takes the state that an inspection finds",
    arguments: [
      (WorkerState.suspending, WorkerCondition.suspended, WorkerState.suspended),
      (.suspending, .running, .background), (.hibernating, .hibernated, .hibernated),
      (.hibernating, .suspended, .suspended), (.hibernating, .running, .background),
      (.resuming, .running, .background), (.resuming, .hibernated, .hibernated),
      (.resuming, .suspended, .suspended),
    ])
  func found(_ state: WorkerState, _ condition: WorkerCondition, _ next: WorkerState) {
    var world = overdue(state)
    let request = world.requests
    world.send(.found(web, condition))
    #expect(world.state(web) == next)
    #expect(world.answers[request]?.count == 1, "the request that began it is answered")
    // The outcome comes late.
    for late in [
      Event.suspended(web), .hibernated(web, world.hibernation(web)),
      .resumed(web, .milliseconds(9)), .suspendFailed(web, "late"),
      .resumeFailed(web, "late", intact: false), .found(web, .unverifiable("late")),
    ] {
      #expect(world.send(late).deeds.isEmpty)
      #expect(world.state(web) == next, "\(late) comes too late to change anything")
    }
    #expect(!world.obey(world.ask(.foreground, web)).isEmpty)
    #expect(world.state(web) == .foreground, "it can be used as before")
  }

  @Test(
    "A worker waits for its outcome as long as inspections find the operation under way",
    arguments: [
      WorkerState.suspending, .hibernating, .resuming,
    ])
  func underWay(_ state: WorkerState) {
    var world = overdue(state)
    for _ in 0..<20 {
      #expect(world.send(.found(web, .underWay)).isEmpty)
      #expect(world.pass(.seconds(29)).isEmpty)
      #expect(world.pass(.seconds(1)).deeds == ["inspect web"])
      #expect(world.state(web) == state)
    }
  }

  @Test(arguments: [
    WorkerState.suspending, .hibernating, .resuming,
  ])
  func `A worker is killed when an inspection can't verify its memory`(_ state: WorkerState) {
    var world = overdue(state)
    let request = world.requests
    #expect(world.send(.found(web, .unverifiable("no image"))).deeds.contains("kill web"))
    #expect(world.state(web) == .terminating)
    #expect(world.answers[request]?.first?.code == .failed)
  }

  @Test(arguments: [
    WorkerState.suspending, .hibernating, .resuming,
  ])
  func `A worker is killed when three inspections bring no answer`(_ state: WorkerState) {
    var world = overdue(state)
    #expect(world.pass(.seconds(20)).deeds == ["inspect web", "inspect web"])
    #expect(world.state(web) == state)
    #expect(world.pass(.seconds(10)).deeds.contains("kill web"))
  }

  @Test func `The time limit of an operation grows with the memory that it moves`() {
    #expect(TransitLimits.limit(moving: .zero) == .seconds(30))
    #expect(TransitLimits.limit(moving: .gigabytes(10)) == .seconds(30 + 1024))
    var world = World()
    world.add(web, size: .megabytes(6000), in: .hibernating)
    #expect(world.pass(.seconds(629)).deeds.isEmpty)
    #expect(world.pass(.seconds(2)).deeds == ["inspect web"])
  }

  @Test func `An explanation shows when the state of a worker in transition is inspected`() throws {
    let world = world(in: .suspending)
    let moves = try #require(world.engine.explanation(of: web, at: world.now)?.moves)
    #expect(moves.contains { $0.after == .seconds(30) })
  }
}
