import Hibernation
import Lifecycle
import Policy
import Testing

@testable import Daemon

/// Does nothing until the test says how it went.
private final class Mechanics: SleepMechanics {
  var isUnderWay = false
  var asked: [String] = []
  var suspended: ((Result<Void, Refusal>) -> Void)?
  var hibernated: ((Result<HibernationOutcome, HibernationError>) -> Void)?
  var thawed: ((String?) -> Void)?
  var restored: ((Result<ResumeOutcome, HibernationError>) -> Void)?
  var recovered: ((RecoveryOutcome) -> Void)?
  var looked: ((WorkerState?, ImageOnDisk?) -> Void)?

  private func begin(_ what: String) {
    asked.append(what)
    isUnderWay = true
  }

  func suspend(isRestoring: Bool, then: @escaping (Result<Void, Refusal>) -> Void) {
    begin(isRestoring ? "settle and suspend" : "suspend")
    suspended = then
  }

  func hibernate(then: @escaping (Result<HibernationOutcome, HibernationError>) -> Void) {
    begin("hibernate")
    hibernated = then
  }

  func thaw(isStopped: Bool, then: @escaping (String?) -> Void) {
    begin(isStopped ? "thaw, stopped" : "thaw")
    thawed = then
  }

  func restore(
    from image: ImageOnDisk, then: @escaping (Result<ResumeOutcome, HibernationError>) -> Void
  ) {
    begin("restore \(image.path)")
    restored = then
  }

  func recover(expecting: ImageExpectation, then: @escaping (RecoveryOutcome) -> Void) {
    begin("recover")
    recovered = then
  }

  func look(then: @escaping (WorkerState?, ImageOnDisk?) -> Void) {
    begin("look")
    looked = then
  }
}

private final class Host: SleepHost {
  var mayBegin = true
  var hasEnded = false
  var noted: [String] = []
  var whenReady: (() -> Void)?

  func whenReadyToSuspend(then: @escaping () -> Void) { whenReady = then }
  var isWatched = false
  func fallsAsleep() { isWatched = true }
  func isSuspended() { noted.append("suspended") }
  func isAwake(why: String?, fromImage: Bool) {
    isWatched = false
    noted.append(why ?? "awake")
  }
  func staysAsleep() { noted.append("stays asleep") }
  func kill() { noted.append("killed") }
  func operationHasEnded() { noted.append("over") }
  func log(_ priority: DaemonLog.Priority, _ text: String) {}
}

@Suite("A worker's sleep") struct WorkerSleepTests {
  private let timers = FakeTimers()
  private let mechanics = Mechanics()
  private let host = Host()
  private let notes = EventNotes()
  private let driver: EngineDriver
  private let sleep: WorkerSleep

  init() {
    driver = .forTest(timers, notes)
    sleep = WorkerSleep(
      WorkerID("web"), driver: driver, clock: timers, mechanics: mechanics, host: host)
  }

  private static let image = ImageOnDisk(path: "/web.image", length: 100)

  private func putToSleep() {
    sleep.suspend()
    host.whenReady?()
    mechanics.suspended?(.success(()))
    sleep.hibernate()
    mechanics.hibernated?(
      .success(
        HibernationOutcome(
          image: Self.image,
          result: HibernationResult(
            footprintBefore: .zero, footprintAfter: .zero, imageSize: .zero, duration: .zero))))
  }

  @Test("Each step of a sleep is reported to the engine, and the resume uses the sleep's own image")
  func whole() {
    putToSleep()
    #expect(sleep.rest.image?.path == "/web.image")
    sleep.resume()
    #expect(mechanics.asked == ["suspend", "hibernate", "restore /web.image"])
    #expect(sleep.isBusy)
    mechanics.restored?(.success(ResumeOutcome()))
    #expect(notes.events == ["suspended", "hibernated", "resumed"])
    #expect(sleep.rest.image == nil && !sleep.isBusy)
  }

  @Test("A sleep begins when the worker was notified, and not at all if an inspection came first")
  func notified() {
    sleep.suspend()
    #expect(mechanics.asked.isEmpty)
    sleep.inspect()
    host.whenReady?()
    #expect(mechanics.asked == ["look"])
  }

  @Test("A sleep takes an outcome once, and none after the end of the run")
  func once() {
    sleep.suspend()
    host.whenReady?()
    mechanics.suspended?(.success(()))
    mechanics.suspended?(.success(()))
    #expect(notes.events == ["suspended"])
    sleep.resume()
    sleep.end()
    mechanics.thawed?(nil)
    #expect(notes.events == ["suspended"])
    #expect(host.noted == ["suspended", "over"])
  }

  @Test("A worker whose memory can't be verified never runs again")
  func unverified() {
    putToSleep()
    sleep.resume()
    mechanics.restored?(.failure(HibernationError(.writingBack, "damaged", aftermath: .intact)))
    #expect(host.noted.contains("stays asleep"))
    sleep.killUnverified()
    for act in [sleep.suspend, sleep.hibernate, sleep.resume] { act() }
    #expect(mechanics.asked.count == 3, "nothing more was begun")
    #expect(notes.events.suffix(3) == ["suspendFailed", "hibernateFailed", "resumeFailed"])
  }

  @Test("A worker whose image is used up and that couldn't be woken is recovered")
  func waking() {
    putToSleep()
    sleep.resume()
    mechanics.restored?(.failure(HibernationError(.waking, "a thread doesn't go on")))
    sleep.resume()
    #expect(mechanics.asked.last == "recover")
    mechanics.recovered?(RecoveryOutcome(result: .success(ResumeOutcome())))
    #expect(notes.events.suffix(2) == ["resumeFailed", "resumed"])
  }

  /// Stopped, not to be suspended, and not woken.
  private func failToWake() {
    sleep.suspend()
    host.whenReady?()
    mechanics.suspended?(.failure(Refusal(text: "it is at work", stillStopped: "EPERM")))
    #expect(notes.events.isEmpty && mechanics.asked == ["suspend", "recover"] && sleep.isBusy)
  }

  @Test("A refused suspension whose worker couldn't be woken ends with a recovery")
  func stillStopped() {
    failToWake()
    mechanics.recovered?(RecoveryOutcome(result: .success(ResumeOutcome())))
    #expect(notes.events == ["suspendFailed"])
    #expect(host.noted == ["over", "can't be suspended: it is at work", "over"])
    #expect(!sleep.isBusy)
  }

  @Test("A worker that can't be woken after a refused suspension sleeps, and is woken later")
  func cantBeWoken() {
    failToWake()
    let error = HibernationError(.waking, "EPERM", aftermath: .intact)
    mechanics.recovered?(RecoveryOutcome(result: .failure(error)))
    #expect(notes.events == ["found", "wakeNeeded"])
    sleep.resume()
    #expect(mechanics.asked.last == "recover")
    mechanics.recovered?(RecoveryOutcome(result: .success(ResumeOutcome())))
    #expect(notes.events.last == "resumed")
  }

  @Test("A refused suspension is inspected if the outcome of its recovery was lost")
  func recoveryIsLost() {
    failToWake()
    mechanics.isUnderWay = false
    sleep.inspect()
    #expect(mechanics.asked.last == "look")
    mechanics.recovered?(RecoveryOutcome(result: .success(ResumeOutcome())))
    #expect(notes.events.isEmpty)
    mechanics.looked?(.suspended, nil)
    #expect(notes.events == ["found", "wakeNeeded"], "nothing watches its inputs")
  }

  @Test("A sleep is inspected if its outcome was lost, and not while the operation continues")
  func lost() {
    sleep.suspend()
    host.whenReady?()
    sleep.inspect()
    #expect(notes.events == ["found"] && mechanics.asked == ["suspend"])
    mechanics.isUnderWay = false
    sleep.inspect()
    #expect(mechanics.asked == ["suspend", "look"])
    mechanics.looked?(.suspended, nil)
    // It comes after all.
    mechanics.suspended?(.success(()))
    #expect(notes.events == ["found", "found", "wakeNeeded"])
    #expect(
      !host.isWatched,
      "an outcome that comes too late has nothing watched: the worker may run by then")
    sleep.resume()
    #expect(mechanics.asked.last == "thaw, stopped")
  }

  @Test(
    "After a suspension whose outcome was lost, a worker whose inputs aren't watched is woken at once"
  )
  func foundUnwatched() {
    sleep.suspend()
    host.whenReady?()
    mechanics.isUnderWay = false
    sleep.inspect()
    mechanics.looked?(.suspended, nil)
    #expect(notes.events == ["found", "wakeNeeded"])
  }

  @Test("A worker whose inputs aren't watched is woken again when a resume fails")
  func resumeFailedUnwatched() {
    putToSleep()
    let failure = HibernationError(.reading, "its image can't be read", aftermath: .intact)
    sleep.resume()
    mechanics.restored?(.failure(failure))
    #expect(notes.events.last == "resumeFailed", "its inputs wake it")
    host.isWatched = false
    sleep.resume()
    mechanics.restored?(.failure(failure))
    #expect(notes.events.suffix(2) == ["resumeFailed", "wakeNeeded"])
  }

  @Test("A worker whose inputs are watched sleeps on after an inspection")
  func foundWatched() {
    putToSleep()
    sleep.resume()
    mechanics.isUnderWay = false
    sleep.inspect()
    mechanics.looked?(.hibernated, Self.image)
    #expect(notes.events == ["suspended", "hibernated", "found"] && host.isWatched)
  }

  @Test("A sleep that an earlier daemon began ends with a recovery, which reports what it found")
  func adopted() {
    sleep.adopt(asleepWith: Self.image)
    #expect(sleep.rest.image?.length == 100)
    sleep.resume()
    mechanics.recovered?(
      RecoveryOutcome(
        result: .failure(HibernationError(.writingBack, "it has ended", aftermath: .vanished)),
        image: nil))
    #expect(host.noted == ["killed", "over"])
    #expect(notes.events == ["resumeFailed"])
  }

  @Test("A worker's end waits while the worker of an earlier daemon is being adopted")
  func performing() {
    var back: ((Int) -> Void)?
    var outcomes: [Int] = []
    sleep.perform({ back = $0 }, then: { outcomes.append($0) })
    #expect(sleep.isBusy && sleep.isActing, "its process may not be reaped")
    back?(7)
    back?(8)
    #expect(outcomes == [7] && !sleep.isActing && host.noted == ["over"])
  }

  @Test("An adoption's outcome after the run's end is dropped, and nothing is under way then")
  func performedTooLate() {
    var back: ((Int) -> Void)?
    var outcomes: [Int] = []
    sleep.perform({ back = $0 }, then: { outcomes.append($0) })
    sleep.end()
    back?(7)
    #expect(outcomes.isEmpty && !sleep.isActing)
  }
}
