import Lifecycle
import Testing

@testable import Daemon

@Suite("Ended workers of `run`") struct EndedRunsTests {
  private let world: AdapterWorld
  private let limit = WorkerRegistry().maxEndedRuns

  init() throws {
    world = try AdapterWorld()
    world.workers.maxEndedRuns = limit
  }

  private func end(_ number: Int) throws {
    let id = WorkerID("run\(number)")
    if world.workers[id] == nil { try world.add(id.name, .terminated, isDeclared: false) }
    world.ends.forgetOldRuns(after: id)
  }

  /// The workers among the first two that the registry and the engine still have.
  private var remaining: [String] {
    ["run0", "run1"].filter {
      let remains = world.workers[WorkerID($0)] != nil
      #expect(remains == (world.driver.state.state(of: WorkerID($0)) != nil))
      return remains
    }
  }

  @Test func `The oldest of more than 100 ended undeclared workers are removed`() throws {
    #expect(limit == 100)
    for number in 0..<limit { try end(number) }
    #expect(remaining == ["run0", "run1"])
    // It ends again, and is the latest one now.
    try end(0)
    try end(100)
    #expect(remaining == ["run0"] && world.workers.count == limit)
  }

  @Test func `Ended undeclared workers that run again stay until their next end`() throws {
    for number in 0..<limit { try end(number) }
    world.driver.request(.start, WorkerID("run0")) { _ in }
    try end(100)
    #expect(remaining == ["run0", "run1"])
    world.driver.send(.exited(WorkerID("run0"), .exited(0)))
    try end(0)
    #expect(remaining == ["run0"])
  }

  @Test func `A worker that the configuration has since then isn't removed`() throws {
    for number in 0..<limit { try end(number) }
    world.workers[WorkerID("run0")]?.isDeclared = true
    try end(100)
    #expect(remaining == ["run0", "run1"])
  }
}
