import Hibernation
import Lifecycle
import Linux
import Policy
import Testing

@testable import Daemon

/// One run of a worker: the real `WorkerSleep` and `WakeWatch`, wired as `SleepOfWorker` wires them, over mechanics
/// that do nothing until the test says how it went.
private final class Run: SleepMechanics, SleepHost, WakeHost {
  let id = WorkerID("web")
  let driver: EngineDriver
  let watches = FakeWatches()
  let timers: FakeTimers
  let inputs: FakeInputs
  private(set) lazy var watch = WakeWatch(id, watches: watches, timers: timers, host: self)
  private(set) lazy var sleep = WorkerSleep(
    id, driver: driver, clock: timers, mechanics: self, host: self)
  var isUnderWay = false
  private var hibernated: ((Result<HibernationOutcome, HibernationError>) -> Void)?
  private var suspended: ((Result<Void, Refusal>) -> Void)?
  private var thawed: ((String?) -> Void)?

  init(_ driver: EngineDriver, _ timers: FakeTimers) throws {
    self.driver = driver
    self.timers = timers
    inputs = try FakeInputs()
  }

  func suspend(isRestoring: Bool, then: @escaping (Result<Void, Refusal>) -> Void) {
    suspended = then
  }
  func hibernate(then: @escaping (Result<HibernationOutcome, HibernationError>) -> Void) {
    hibernated = then
  }
  func thaw(isStopped: Bool, then: @escaping (String?) -> Void) { thawed = then }
  func restore(
    from image: ImageOnDisk, then: @escaping (Result<ResumeOutcome, HibernationError>) -> Void
  ) {}
  func recover(expecting: ImageExpectation, then: @escaping (RecoveryOutcome) -> Void) {}
  func look(then: @escaping (WorkerState?, ImageOnDisk?) -> Void) {}

  /// Its processes have stopped.
  func stop() { suspended?(.success(())) }
  func refuseHibernation() {
    hibernated?(.failure(HibernationError(.checking, "a device is mapped", aftermath: .intact)))
  }
  func go(_ failure: String? = nil) { thawed?(failure) }

  var mayBegin: Bool { true }
  var hasEnded: Bool { false }
  func whenReadyToSuspend(then: @escaping () -> Void) { then() }
  func fallsAsleep() {
    watch.listen(at: .success(inputs) as Result<FakeInputs, SystemCallError>)
  }
  var isWatched: Bool { watch.isWatching }
  func isSuspended() { watch.wakeForWhatWaits() }
  func isAwake(why: String?, fromImage: Bool) { if why == nil { watch.stop() } }
  func staysAsleep() { watch.repeatCall() }
  func kill() {}
  func operationHasEnded() {}
  func log(_ priority: DaemonLog.Priority, _ text: String) {}

  var healthChecksWhileAsleep: [AsleepAnswer] { [] }
  func prioritize() {}
  func send(_ event: Event) { driver.send(event) }
  func watchHasEnded() {}
}

@Suite("An arrival for a worker that is being put to sleep") struct WakeDuringSleepTests {
  private let timers = FakeTimers()
  private let notes = EventNotes()
  private let run: Run

  init() throws {
    run = try Run(.forTest(timers, notes), timers)
  }

  @Test(
    "A request from before the suspension wakes the worker after the engine knows that it sleeps")
  func before() throws {
    run.inputs.waiting = "a request"
    run.sleep.suspend()
    #expect(notes.events.isEmpty)
    run.stop()
    try run.watches.serve()
    #expect(notes.events == ["suspended", "wakeNeeded"])
  }

  @Test("A request between the stop and the engine's knowledge of it wakes the worker once")
  func between() throws {
    run.sleep.suspend()
    run.inputs.arrive("a request")
    run.stop()
    try run.watches.serve()
    #expect(notes.events == ["suspended", "wakeNeeded"])
  }

  @Test(
    "A request during a hibernation is reported while that is under way, and not repeated after it")
  func during() throws {
    run.sleep.suspend()
    run.stop()
    run.sleep.hibernate()
    run.inputs.arrive("a request")
    try run.watches.serve()
    #expect(notes.events == ["suspended", "wakeNeeded"] && run.sleep.isBusy)
    run.refuseHibernation()
    try run.watches.serve()
    #expect(notes.events == ["suspended", "wakeNeeded", "hibernateFailed"])
  }

  @Test("A request after the resume isn't reported, as the worker reads it itself")
  func after() throws {
    run.sleep.suspend()
    run.stop()
    run.sleep.resume()
    run.go()
    run.inputs.arrive("a request")
    try run.watches.serve()
    #expect(notes.events == ["suspended", "resumed"] && run.watches.active == 0)
  }

  @Test("A request is reported again if the worker couldn't be resumed, and so is a second request")
  func failed() throws {
    run.sleep.suspend()
    run.stop()
    run.inputs.arrive("a request")
    try run.watches.serve()
    run.sleep.resume()
    run.go("a thread doesn't go on")
    #expect(notes.events == ["suspended", "wakeNeeded", "resumeFailed", "wakeNeeded"])
    run.inputs.arrive("another request")
    try run.watches.serve()
    #expect(notes.events.count == 5)
    run.sleep.resume()
    run.go()
    #expect(notes.events.last == "resumed" && run.watches.active == 0)
  }
}
