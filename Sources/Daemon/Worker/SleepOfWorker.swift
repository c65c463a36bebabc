import Control
import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import Synchronization

/// What a worker's `WorkerSleep` gets of the daemon, for one run: its processes are acted on by the threads of
/// `mechanics` and `hibernation`.
final class SleepOfWorker: SleepMechanics, SleepHost {
  private unowned let daemon: Daemon
  private weak var runtime: WorkerRuntime?
  private let id: WorkerID
  /// Cleared on the thread of the operation that is under way, when that has ended.
  private var current: Underway?

  private final class Underway: Sendable {
    private let state = Atomic(true)
    var isTrue: Bool { state.load(ordering: .acquiring) }
    func end() { state.store(false, ordering: .releasing) }
  }

  init(_ daemon: Daemon, _ runtime: WorkerRuntime) {
    self.daemon = daemon
    self.runtime = runtime
    id = runtime.id
  }

  var isUnderWay: Bool { current?.isTrue == true }

  /// What the operation's thread calls with the outcome.
  private func callback<Outcome: Sendable>(
    _ then: @escaping (Outcome) -> Void
  ) -> @Sendable (Outcome) -> Void {
    let underway = Underway()
    current = underway
    let back = daemon.loopReturn.callback(then)
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
    let job = suspendJob(runtime, process)
    runtime.traffic = nil
    let hibernation = isRestoring ? daemon.hibernation : nil
    let done = callback { [self] (outcome: Suspended) in
      if let opened = outcome.opened, let process = self.runtime?.process,
        process.identity == job.identity
      {
        process.take(opened)
      }
      // It may be hibernated next.
      daemon.senses.imageDisk.takeReading { [self] in
        if case .success(let asleep) = outcome.result { fellAsleep(asleep) }
        then(outcome.result.map { _ in })
      }
    }
    daemon.mechanics.submit(about: id.name) {
      [id, refresh = process.memoryRefresh] in
      // While it may still be opened: a worker's children have memory too. What can't be opened is named by the
      // hibernation that needs it.
      let opened = try? refresh.perform()
      let result = Result {
        // What waits for a missing page can't be frozen.
        try hibernation?.settle(id.name)
        return try job.run()
      }.mapError { Refusal(text: "\($0)") }
      done(Suspended(opened: opened, result: result))
    }
  }

  /// An outcome that is known at once is told later all the same.
  private func refuse<Outcome>(_ then: @escaping (Outcome) -> Void, _ outcome: Outcome) {
    daemon.loop.after(.zero) { then(outcome) }
  }

  private func suspendJob(_ runtime: WorkerRuntime, _ process: WorkerProcess) -> SuspendJob {
    var job = SuspendJob(
      identity: process.identity, session: process.session, cgroup: process.cgroup,
      ownChannels: runtime.ownChannels, leftUnread: runtime.leftUnread, waits: runtime.waits,
      dependsOnInputs: runtime.configuration.policy.foreground.mode == .activity,
      wakesForTimers: runtime.configuration.policy.background.wakeForTimers != nil,
      answeredPorts: runtime.answeredPorts)
    let cause = daemon.engine.snapshot(of: id, at: EventLoop.now)?.cause
    job.isExternal = runtime.external != nil
    job.jobs = runtime.external?.jobs
    job.mustBeIdle = job.dependsOnInputs && (cause == .graceOver || cause == .quietAgain)
    // An earlier daemon's worker, whose sockets Yama keeps from us: its clients would wait for ever.
    if !Yama.current.permits(process.identity.pid) { job.dependsOnInputs = true }
    return job
  }

  private func fellAsleep(_ asleep: Asleep) {
    guard let runtime else { return }
    runtime.asleepSince = EventLoop.now
    daemon.listen(for: runtime, at: asleep.sources)
    daemon.setAlarm(for: runtime, asleep.times)
    daemon.managers.watchManager(of: runtime, asleep.manager.map { $0.look })
    runtime.conversation?.offers.recount()
  }

  func hibernate(then: @escaping (Result<HibernationOutcome, HibernationError>) -> Void) {
    guard let runtime, let target = runtime.target() else {
      return refuse(then, .failure(HibernationError(.checking, "it has no process", .vanished)))
    }
    let policy = runtime.configuration.policy.hibernate
    runtime.conversation?.offers.recount()
    let disk = daemon.engine.policy.hibernate.disk
    if daemon.senses.imageDisk.isShort(of: daemon.engine.footprint(of: id), by: disk) {
      // Done before anything that is asked of it later.
      daemon.hibernation.dropIdleBases()
    }
    let startKeeper = daemon.keeperStarter.startKeeperWhereMissing()
    let pids = Array(target.memories.keys)
    runtime.measuring.memoryMoves()
    let (before, missing, started) = (Before(), runtime.missing, EventLoop.now)
    let removal = runtime.imageRemoval
    runtime.imageRemoval = nil
    let done = callback { [self] (outcome: Hibernated) in
      then(hibernated(outcome, from: before.footprint, started: started))
    }
    let request = HibernationRequest(
      target, to: daemon.state.image(of: id.name), level: Int32(policy.compressionLevel),
      restore: daemon.resumeChoice.preference(policy),
      // Encrypted images are complete each time: a base is kept in plain only.
      overlay: policy.overlay && !policy.encrypt, isSealed: policy.encrypt,
      dropsFilePages: policy.dropFilePages,
      storage: ImageStorage(
        durability: policy.durability == .synced ? .synced : .cached,
        dropsCache: daemon.engine.pressure != .normal))
    daemon.hibernation.hibernate(
      request,
      first: {
        startKeeper()
        removal?()
        before.take(pids, missing)
      }
    ) { result in
      // Where it can't be measured, what is left counts as nothing.
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
      let length = Int64(summary.imageLength)
      if let runtime { daemon.sleeps.note(summary, of: runtime, took: took) }
      return HibernationOutcome(
        image: ImageOnDisk(summary.image, length: length),
        result: HibernationResult(
          footprintBefore: before, footprintAfter: outcome.footprint,
          imageSize: ByteCount(length), duration: took),
        restoreMode: .of(summary.image.restore))
    }
  }

  func thaw(isStopped: Bool, then: @escaping (String?) -> Void) {
    guard let runtime, let target = runtime.target() else {
      return refuse(then, "it has no process")
    }
    runtime.conversation?.offers.dropFound()
    runtime.measuring.memoryMoves()
    let done = callback(then)
    daemon.mechanics.submit(about: id.name, isUrgent: true) {
      let tree = target.restartInterruptedSyscalls()
      done(Daemon.failure { try target.wake(tree, isStopped: isStopped) })
    }
  }

  func restore(
    from image: ImageOnDisk, then: @escaping (Result<ResumeOutcome, HibernationError>) -> Void
  ) {
    guard let runtime, let target = runtime.target() else {
      return refuse(then, .failure(HibernationError(.checking, "it has no process", .vanished)))
    }
    runtime.conversation?.offers.dropFound()
    let keepsBase = runtime.keepsBase
    let done = moving(then) { (result: Result<ResumeSummary, HibernationError>) in
      result.map(ResumeOutcome.init)
    }
    afterWhatIsUnderWay { [hibernation = daemon.hibernation] in
      hibernation.resume(
        target, from: image.resting, keepsBase: keepsBase, then: done)
    }
  }

  func recover(expecting: ImageExpectation, then: @escaping (RecoveryOutcome) -> Void) {
    guard let runtime, let target = runtime.target() else {
      let error = HibernationError(.checking, "it has no process", .vanished)
      return refuse(then, RecoveryOutcome(result: .failure(error)))
    }
    runtime.conversation?.offers.dropFound()
    let path = daemon.state.image(of: id.name)
    let done = moving(then) { (found: Recovered) in
      RecoveryOutcome(
        result: found.result.map(ResumeOutcome.init),
        image: found.length.map { ImageOnDisk(path: path, length: $0) })
    }
    afterWhatIsUnderWay { [hibernation = daemon.hibernation] in
      hibernation.recover(target, from: path, expecting: expecting) { result in
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

  /// Before a worker's memory is brought back: its record says so on disk (see `WorkerRecordKeeper`), and
  /// what was begun about it, a purge for one, has ended.
  private func afterWhatIsUnderWay(_ body: @escaping @Sendable () -> Void) {
    let recorded = daemon.records.barrier()
    daemon.mechanics.submit(about: id.name, isUrgent: true) {
      recorded()
      body()
    }
  }

  func look(then: @escaping (WorkerState?, ImageOnDisk?) -> Void) {
    guard let target = runtime?.target() else {
      daemon.loop.after(.zero) { then(nil, nil) }
      return
    }
    let path = daemon.state.image(of: id.name)
    let image = runtime?.sleep?.rest.image
    let done = callback { (rest: WorkerState?) in
      let found = ImageOnDisk(path: path, mark: image?.mark, length: image?.length)
      then(rest, rest == .hibernated ? found : nil)
    }
    daemon.mechanics.submit(about: id.name) { done(Self.rest(of: target, image: path)) }
  }

  // MARK: host

  var mayBegin: Bool {
    guard let runtime else { return false }
    return runtime.process != nil && !runtime.hasExited
  }

  var hasEnded: Bool { runtime?.hasExited ?? true }

  func whenReadyToSuspend(then: @escaping () -> Void) {
    guard let runtime, runtime.process != nil else { return }
    daemon.senses.liveness.whenUnasked(runtime) { [daemon] in
      daemon.conversations.whenTold(runtime, then)
    }
  }

  func isSuspended() {
    if let runtime { daemon.wakeForWhatWaits(runtime) }
  }

  func isAwake(why: String?, fromImage: Bool) {
    guard let runtime else { return }
    if why == nil { daemon.stopListening(for: runtime) }
    daemon.conversations.tellAwake(runtime, why: why)
    guard fromImage else { return }
    daemon.senses.imageDisk.imageGone(of: id.name, keepsBase: runtime.keepsBase)
    daemon.senses.imageDisk.takeReading()
  }

  func staysAsleep() {
    guard let runtime else { return }
    daemon.repeatCall(runtime)
    daemon.sleeps.wakeWhenReleased(id)
  }

  func kill() { daemon.ends.kill(id) }

  func operationHasEnded() {
    guard let runtime, runtime.hasExited else { return }
    daemon.ends.rootHasEnded(runtime)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) {
    daemon.log(priority, "\(id): \(text)")
  }
}
