import Control
import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

/// Acts on one run of a worker for its `WorkerSleep`: its processes are stopped, hibernated and resumed by the threads
/// of `mechanics` and `hibernation`, and its inputs are watched while it sleeps.
final class SleepOfWorker: SleepMechanics, SleepHost {
  private weak var runtime: WorkerUnit?
  private let id: WorkerID
  private let services: Services
  private let driver: EngineDriver
  private let imageDisk: ImageDiskMonitor
  /// Of its image.
  private let path: String
  private let wakeWatch: WakeWatch
  private let surroundings: any SleepSurroundings
  private let recordPatience: Duration
  /// Cleared on the thread of the operation that is under way, when that has ended.
  private var current: Underway?
  /// What the suspension that has just ended has found; nil: none has.
  private var asleep: Asleep?

  init(
    runtime: WorkerUnit, services: Services, driver: EngineDriver, imageDisk: ImageDiskMonitor,
    image path: String, wakeWatch: WakeWatch, surroundings: any SleepSurroundings,
    recordPatience: Duration = RecordWait.patience
  ) {
    self.runtime = runtime
    id = runtime.id
    self.services = services
    self.driver = driver
    self.imageDisk = imageDisk
    self.path = path
    self.wakeWatch = wakeWatch
    self.surroundings = surroundings
    self.recordPatience = recordPatience
  }

  var isUnderWay: Bool { current?.isTrue == true }

  /// What the operation's thread calls with the outcome.
  private func callback<Outcome: Sendable>(
    _ then: @escaping (Outcome) -> Void
  ) -> @Sendable (Outcome) -> Void {
    let underway = Underway()
    current = underway
    let back = services.loopReturn.callback(then)
    return {
      underway.end()
      back($0)
    }
  }

  // MARK: mechanics

  func suspend(isRestoring: Bool, then: @escaping (Result<Void, Refusal>) -> Void) {
    guard let runtime, let process = runtime.process else {
      return refuse(then, .failure(Refusal(text: "it has no process")))
    }
    let job = SuspendJob(
      of: runtime, process, leftUnread: wakeWatch.leftUnread,
      because: driver.state.snapshot(of: id, at: EventLoop.now)?.cause)
    runtime.traffic = nil
    let hibernation = isRestoring ? services.hibernation : nil
    var (ended, isRead): (Suspended?, Bool) = (nil, false)
    let end = { [self] in
      guard isRead, let outcome = ended else { return }
      if case .success(let found) = outcome.result { asleep = found }
      then(outcome.result.map { _ in })
      // Where the outcome came too late, nothing has used it, and the worker may run.
      asleep = nil
    }
    let done = callback { [self] (outcome: Suspended) in
      let process = self.runtime?.process
      if let opened = outcome.opened, process?.identity == job.identity { process?.adopt(opened) }
      ended = outcome
      end()
    }
    // It may be hibernated next.
    imageDisk.sendReading {
      isRead = true
      end()
    }
    services.mechanics.submit(about: id.name) {
      [id, refresh = process.memoryRefresh] in
      // Opened while that may still be permitted: a worker's children have memory too. The hibernation that
      // needs a memory that can't be opened reports it.
      let opened = try? refresh.perform()
      let result = Result {
        // A process that waits for a missing page can't be frozen.
        try hibernation?.awaitFill(of: id.name)
        return try job.run()
      }.mapError(Refusal.init(suspending:))
      done(Suspended(opened: opened, result: result))
    }
  }

  /// An outcome that is known at once is still reported later.
  private func refuse<Outcome>(_ then: @escaping (Outcome) -> Void, _ outcome: Outcome) {
    services.loop.after(.zero) { then(outcome) }
  }

  func fallsAsleep() {
    guard let runtime, let asleep, !wakeWatch.isOver else { return }
    runtime.asleepSince = EventLoop.now
    if let measurement = asleep.measurement { runtime.measuring.rests(measurement) }
    wakeWatch.listen(at: asleep.sources)
    let hasClients = !asleep.hasNoClients
    let rule = runtime.configuration.policy.background.wakeForTimers
    wakeWatch.timer.set(asleep.times, shortest: TimerWake.shortest(rule, hasClients: hasClients))
    wakeWatch.noteStoppedWork(
      hasClients ? [] : asleep.times,
      isWriting: runtime.sample.writing.isUnderWay(hasClients: hasClients, at: EventLoop.now))
    surroundings.watchManager(asleep.manager)
    runtime.conversation?.offers.recount()
  }

  /// Its image gets its name when a later daemon would find the worker.
  func hibernate(then: @escaping (Result<HibernationOutcome, HibernationError>) -> Void) {
    guard let runtime, runtime.ending == nil, let target = runtime.target() else {
      return refuse(then, .failure(.noProcess))
    }
    let recordWait = RecordWait(patience: recordPatience)
    services.records.whenSaved(id.name) { recordWait.answer($0) }
    let policy = runtime.configuration.policy.hibernate
    runtime.conversation?.offers.recount()
    let disk = driver.state.policy.hibernate.disk
    if imageDisk.isShort(of: driver.state.footprint(of: id), by: disk) {
      // This is done before later requests.
      services.hibernation.dropIdleBases()
    }
    let startKeeper = surroundings.keeperStart()
    let pids = Array(target.memories.keys)
    let (missing, started) = (runtime.missing, EventLoop.now)
    let before = Before(runtime.measuring.atRest?.footprint)
    runtime.measuring.memoryMoves()
    let removal = runtime.imageRemoval
    runtime.imageRemoval = nil
    let done = callback { [self] (outcome: Hibernated) in
      then(hibernated(outcome, from: before.footprint, started: started))
    }
    var request = HibernationRequest(
      target, to: path, by: policy, restore: surroundings.resumePreference(policy),
      dropsCache: driver.state.pressure != .normal)
    request.obstacle = { recordWait.obstacle(waits: $0) }
    services.hibernation.hibernate(
      request,
      first: {
        startKeeper()
        removal?()
        before.measure(pids, missing)
      }
    ) { result in
      // If it can't be measured, the rest counts as nothing.
      let after = (try? Footprint.measure(pids))?.footprint ?? 0
      done(Hibernated(result: result, footprint: ByteCount(after)))
    }
  }

  private func hibernated(
    _ outcome: Hibernated, from before: ByteCount, started: Instant
  ) -> Result<HibernationOutcome, HibernationError> {
    runtime?.measuring.memoryMoves()
    let took = EventLoop.now - started
    return outcome.result.map { summary in
      surroundings.hasHibernated(summary, from: before, took: took)
      return HibernationOutcome(summary, from: before, to: outcome.footprint, took: took)
    }
  }

  func thaw(isStopped: Bool, then: @escaping (String?) -> Void) {
    guard let runtime, let target = runtime.target() else {
      return refuse(then, "it has no process")
    }
    runtime.conversation?.offers.dropFound()
    runtime.measuring.memoryMoves()
    let done = callback(then)
    services.mechanics.submit(about: id.name, isUrgent: true) {
      do {
        try DescriptorReserve.use {
          let tree = target.restartInterruptedSyscalls()
          try target.wake(tree, isStopped: isStopped)
        }
        done(nil)
      } catch { done("\(error)") }
    }
  }

  func restore(
    from image: ImageOnDisk, then: @escaping (Result<ResumeOutcome, HibernationError>) -> Void
  ) {
    guard let runtime, let target = runtime.target() else {
      return refuse(then, .failure(.noProcess))
    }
    runtime.conversation?.offers.dropFound()
    let keepsBase = runtime.keepsBase
    let done = moving(then) { (result: Result<ResumeSummary, HibernationError>) in
      result.map(ResumeOutcome.init)
    }
    // Pages are put in place meanwhile: the record takes a tenth of a resume, or more on a slow disk.
    let recorded = services.records.barrier(id.name)
    services.mechanics.performAfterAll(about: id.name) { [hibernation = services.hibernation] in
      hibernation.resume(
        target, from: image.resting, keepsBase: keepsBase, recorded: recorded, then: done)
    }
  }

  func recover(expecting: ImageExpectation, then: @escaping (RecoveryOutcome) -> Void) {
    guard let runtime, let target = runtime.target() else {
      return refuse(then, RecoveryOutcome(result: .failure(.noProcess)))
    }
    runtime.conversation?.offers.dropFound()
    let done = moving(then) { [path] (found: Recovered) in
      RecoveryOutcome(
        result: found.result.map(ResumeOutcome.init),
        image: found.length.map { ImageOnDisk(path: path, length: $0) })
    }
    // Earlier operations on it have ended.
    let recorded = services.records.barrier(id.name)
    services.mechanics.submit(about: id.name, isUrgent: true) {
      [hibernation = services.hibernation, path] in
      hibernation.recover(target, from: path, expecting: expecting, recorded: recorded) { result in
        done(Recovered(result: result, length: Hibernator.lengthOnDisk(of: path)))
      }
    }
  }

  /// Its memory moves between now and the outcome.
  private func moving<Found: Sendable, Outcome>(
    _ then: @escaping (Outcome) -> Void, _ outcome: @escaping (Found) -> Outcome
  ) -> @Sendable (Found) -> Void {
    runtime?.measuring.memoryMoves()
    return callback { [self] in
      runtime?.measuring.memoryMoves()
      then(outcome($0))
    }
  }

  func look(then: @escaping (WorkerState?, ImageOnDisk?) -> Void) {
    guard let target = runtime?.target() else {
      services.loop.after(.zero) { then(nil, nil) }
      return
    }
    let image = runtime?.sleep?.rest.image
    let done = callback { [path] (rest: WorkerState?) in
      then(rest, rest == .hibernated ? image ?? ImageOnDisk(path: path) : nil)
    }
    services.mechanics.submit(about: id.name) { [path] in
      done(Self.rest(of: target, image: path, known: image?.resting.expectation))
    }
  }

  // MARK: host

  var mayBegin: Bool {
    guard let runtime else { return false }
    return runtime.process != nil && !runtime.hasExited
  }

  var hasEnded: Bool { runtime?.hasExited ?? true }

  func whenReadyToSuspend(then: @escaping () -> Void) {
    guard runtime?.process != nil else { return }
    surroundings.whenReadyToSuspend(then: then)
  }

  var isWatched: Bool { wakeWatch.isWatching }

  func isSuspended() { wakeWatch.wakeForWhatWaits() }

  func isAwake(why: String?, fromImage: Bool) {
    guard let runtime else { return }
    if why == nil { wakeWatch.stop() }
    runtime.run.masters.releaseLater(about: id, by: services)
    surroundings.sendAwake(why: why)
    guard fromImage else { return }
    imageDisk.imageGone(of: id.name, keepsBase: runtime.keepsBase)
    imageDisk.sendReading()
  }

  func staysAsleep() {
    guard runtime != nil else { return }
    wakeWatch.repeatCall()
    surroundings.wakeWhenReleased()
  }

  func kill() { surroundings.kill() }

  func operationHasEnded() {
    if runtime?.hasExited == true { surroundings.rootHasEnded() }
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) {
    services.log(priority, "\(id): \(text)")
  }
}
