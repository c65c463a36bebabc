import Hibernation
import Linux
import Policy
import Testing

@testable import Daemon

@Suite("The wake timer of a sleeping worker") struct WakeTimerTests {
  private let timers = FakeLoop()
  private let rings = Recorded<String>()
  private let timer: WakeTimer

  init() {
    timer = WakeTimer(timers) { [rings] in rings.all.append($0) }
  }

  /// A timer that repeats.
  private func repeating(_ interval: Duration, in remaining: Duration) -> DueTime {
    DueTime(source: .timer, remaining: remaining, whole: interval)
  }

  @Test func `A sleeping worker's wake timer fires once, when its first long timer is due`() {
    let start = timers.now
    timer.set(
      [
        repeating(.seconds(300), in: .seconds(90)), repeating(.seconds(60), in: .seconds(40)),
        repeating(.milliseconds(100), in: .milliseconds(20)),
      ], shortest: .seconds(30))
    #expect(timer.due == start + .seconds(40))
    timers.advance(by: .seconds(39))
    #expect(rings.all.isEmpty)
    timers.advance(by: .seconds(1))
    #expect(rings.all == ["its own timer"] && timer.due == nil)
    timers.advance(by: .seconds(3600))
    #expect(rings.all.count == 1)
  }

  @Test func `No wake timer is set if the policy wakes for no timer, or none is long enough`() {
    timer.set([repeating(.seconds(60), in: .seconds(40))], shortest: nil)
    #expect(timer.due == nil)
    timer.set([repeating(.seconds(1), in: .seconds(1))], shortest: .seconds(30))
    #expect(timer.due == nil && timers.pending.isEmpty)
  }

  @Test func `A wake timer whose time has passed fires in the next turn, and not before`() {
    timer.set(at: timers.now + .seconds(-5), "a time of its own, set before")
    #expect(rings.all.isEmpty && timers.pending == [.zero])
    timers.advance(by: .zero)
    #expect(rings.all == ["a time of its own, set before"])
  }

  @Test func `A worker has one wake timer, and another time replaces it`() {
    timer.set([repeating(.seconds(60), in: .seconds(40))], shortest: .seconds(30))
    timer.set([repeating(.seconds(60), in: .seconds(50))], shortest: .seconds(30))
    #expect(timers.pending == [.seconds(50)])
    timer.set(at: timers.now + .seconds(10), "sooner")
    #expect(timers.pending == [.seconds(10)])
    timers.advance(by: .seconds(100))
    #expect(rings.all == ["sooner"])
  }

  @Test func `A wake timer is cancelled when it is switched off, and when its worker runs`() {
    timer.set([repeating(.seconds(60), in: .seconds(40))], shortest: .seconds(30))
    timer.set([repeating(.seconds(60), in: .seconds(40))], shortest: nil)
    #expect(timers.pending.isEmpty)
    timer.set([repeating(.seconds(60), in: .seconds(40))], shortest: .seconds(30))
    timer.cancel()
    timer.cancel()
    #expect(timer.due == nil && timers.pending.isEmpty && rings.all.isEmpty)
  }

  @Test func `A time-out of unknown length wakes no more often than the policy says`() {
    let timeout = DueTime(source: .timeout, remaining: .seconds(3), whole: nil)
    timer.set([timeout], shortest: .seconds(60))
    timers.advance(by: .seconds(3))
    #expect(rings.all == ["the time-out of a system call"])
    timer.set([timeout], shortest: .seconds(60))
    #expect(timers.pending == [.seconds(60)])
    timers.advance(by: .seconds(20))
    timer.cancel()
    timer.set([timeout], shortest: .seconds(60))
    #expect(timers.pending == [.seconds(40)])
  }
}

@Suite("An arrival for a worker that is being put to sleep") struct WakeDuringSleepTests {
  private let world: SleepWorld
  private let sleep: WorkerSleep

  init() throws {
    world = try SleepWorld()
    sleep = try world.makeSleep()
  }

  /// Reports that the worker's processes have stopped.
  private func stop() { world.memory.stop(with: world.inputs) }

  @Test(arguments: [true, false])
  func `A request before the engine knows of the stop wakes the worker once`(
    isWaiting: Bool
  ) throws {
    // Either it is found when the processes stop, or the watch reports it.
    if isWaiting { world.inputs.waiting = "a request" }
    sleep.suspend()
    if !isWaiting { world.inputs.arrive("a request") }
    #expect(world.named.isEmpty)
    stop()
    try world.watches.serve()
    #expect(world.named == ["suspended", "wakeNeeded"])
  }

  @Test func `A request during a hibernation is reported at once, and not again`() throws {
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

  @Test func `A request is reported again if the worker couldn't be resumed`() throws {
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
