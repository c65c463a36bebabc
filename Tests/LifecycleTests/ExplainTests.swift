import Lifecycle
import Policy
import Testing

@Suite("Explanations")
struct ExplainTests {
  private func explain(_ world: World, _ worker: WorkerID = web) throws -> Explanation {
    try #require(world.engine.explanation(of: worker, at: world.now))
  }

  @Test("An explanation names every obstacle, with the numbers and the key that decides")
  func everyObstacle() throws {
    var world = World()
    world.add(web, size: ByteCount(Int64(21.3 * 1_048_576)), in: .background)
    world.live(.seconds(10))
    world.obey(world.ask(.wake, web))
    world.live(.seconds(12))
    let explanation = try explain(world)
    #expect(explanation.state == .suspended && explanation.next == .hibernated)
    #expect(
      explanation.cause.code == "grace_over"
        && explanation.causeKey?.path == "background.suspend_after")
    #expect(
      explanation.obstacles.map(\.sentence) == [
        "its footprint, 21.3 MB, is over hibernate.max_footprint, 16 MB",
        "suspended for 2 s of hibernate.after 30 s",
      ])
    #expect(
      explanation.obstacles.map(\.key?.path) == ["hibernate.max_footprint", "hibernate.after"])
    #expect(explanation.obstacles.first?.limit == .megabytes(16))
    #expect(explanation.obstacles.map(\.clearsIn) == [nil, .seconds(28)])
  }

  @Test func `An explanation names everything that keeps a worker from being suspended`() throws {
    var world = World()
    world.add(web, canShed: true, in: .foreground)
    world.send(.taskBegan(web, task: "save", limit: nil))
    world.send(.hold(web, true))
    world.ask(.background, web)
    world.pass(.seconds(4))
    #expect(
      try explain(world).obstacles.map(\.key?.path) == [
        "background.shed_deadline", "background.task_limit", "background.safe_point.hold",
        "background.suspend_after",
      ])
  }

  @Test func `An explanation says what would move the worker, and when`() throws {
    var world = World()
    world.add(web, in: .background)
    world.live(.seconds(10))
    let moves = try explain(world).moves
    #expect(moves.contains { $0.to == .hibernated && $0.after == .seconds(30) })
    #expect(moves.contains { $0.to == .hibernated && $0.sentence == "memory pressure warning" })
    #expect(moves.contains { $0.to == .terminating && $0.key?.path == "ladder.urgent" })
    #expect(moves.contains { $0.sentence == "`dormouse wake web`" })
  }

  @Test("An explanation gives a time at which the worker does move", arguments: [Int64(0), 3, 7])
  func promised(_ asked: Int64) throws {
    var world = World()
    world.add(web, in: .background)
    world.pass(.seconds(asked))
    let move = try #require(try explain(world).moves.first { $0.to == .suspended })
    let after = try #require(move.after)
    world.pass(after - .milliseconds(1))
    #expect(world.state(web) == .background)
    world.pass(.milliseconds(1))
    #expect(world.state(web) == .suspending)
  }

  @Test(
    "There is an explanation for every state, with something that moves the worker",
    arguments: WorkerState.allCases)
  func everyState(_ state: WorkerState) throws {
    var world = World()
    world.add(web, canShed: true, announcesReadiness: true, in: state)
    let explanation = try explain(world)
    #expect(!explanation.moves.isEmpty)
    #expect(!explanation.cause.sentence.isEmpty)
    #expect(world.engine.explanation(of: WorkerID("absent")) == nil)
  }

  @Test("An explanation agrees with the verdict that `status` shows")
  func verdict() throws {
    var world = World()
    world.add(web, size: .megabytes(60), in: .suspended)
    #expect(try explain(world).obstacles.first?.sentence == world.verdict(web))
  }

  @Test func `The ranking gives the terms of each place, and what decided it`() {
    var world = World()
    let small = WorkerID("small")
    for (worker, size, importance) in [(web, Int64(40), 0), (small, 10, 50)] {
      world.add(worker, size: .megabytes(size), importance: importance, in: .suspended)
    }
    let tiny = WorkerID("tiny")
    world.add(tiny, size: .kilobytes(64), in: .foreground)
    let ranking = world.engine.ranking(at: world.now)
    #expect(ranking.termination.map(\.worker) == [web, small, tiny])
    #expect(ranking.termination.map(\.band.total) == [0, 14, 100])
    #expect(ranking.termination[1].band.importance == 14)
    #expect(
      ranking.termination.map(\.before?.sentence) == ["lower band", "lower band", nil])
    #expect(ranking.termination.map(\.level) == [.urgent, .urgent, .critical])
    #expect(ranking.termination[2].obstacles.first?.limit == .megabytes(1))
    #expect(ranking.hibernation.map(\.worker) == [web, small])
    #expect(ranking.hibernation[0].obstacles.map(\.key?.path) == ["hibernate.max_footprint"])
    #expect(ranking.hibernation[1].obstacles.isEmpty)
  }
}
