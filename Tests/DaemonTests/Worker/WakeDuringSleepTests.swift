import Hibernation
import Lifecycle
import Testing

@testable import Daemon

@Suite("An arrival for a worker that is being put to sleep") struct WakeDuringSleepTests {
  private let world: SleepWorld
  private let sleep: WorkerSleep

  init() throws {
    world = try SleepWorld()
    sleep = try world.makeSleep()
  }

  /// Reports that the worker's processes have stopped.
  private func stop() { world.memory.stop(with: world.inputs) }

  @Test(
    "A request from before the suspension wakes the worker after the engine knows that it sleeps")
  func before() throws {
    world.inputs.waiting = "a request"
    sleep.suspend()
    #expect(world.named.isEmpty)
    stop()
    try world.watches.serve()
    #expect(world.named == ["suspended", "wakeNeeded"])
  }

  @Test("A request between the stop and the engine's knowledge of it wakes the worker once")
  func between() throws {
    sleep.suspend()
    world.inputs.arrive("a request")
    stop()
    try world.watches.serve()
    #expect(world.named == ["suspended", "wakeNeeded"])
  }

  @Test(
    "A request during a hibernation is reported while that is under way, and not repeated after it")
  func during() throws {
    sleep.suspend()
    stop()
    sleep.hibernate()
    world.inputs.arrive("a request")
    try world.watches.serve()
    #expect(world.named == ["suspended", "wakeNeeded"] && sleep.isBusy)
    world.memory.end(
      hibernation: .failure(
        HibernationError(.checking, "a device is mapped", aftermath: .intact)))
    try world.watches.serve()
    #expect(world.named == ["suspended", "wakeNeeded", "hibernateFailed"])
  }

  @Test func `A request after the resume isn't reported, as the worker reads it itself`() throws {
    sleep.suspend()
    stop()
    sleep.resume()
    world.memory.thawed?(nil)
    world.inputs.arrive("a request")
    try world.watches.serve()
    #expect(world.named == ["suspended", "resumed"] && world.watches.active == 0)
  }

  @Test("A request is reported again if the worker couldn't be resumed, and so is a second request")
  func failed() throws {
    sleep.suspend()
    stop()
    world.inputs.arrive("a request")
    try world.watches.serve()
    sleep.resume()
    world.memory.thawed?("a thread doesn't go on")
    #expect(world.named == ["suspended", "wakeNeeded", "resumeFailed", "wakeNeeded"])
    world.inputs.arrive("another request")
    try world.watches.serve()
    #expect(world.named.count == 5)
    sleep.resume()
    world.memory.thawed?(nil)
    #expect(world.named.last == "resumed" && world.watches.active == 0)
  }
}
