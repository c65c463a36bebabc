import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

// The operations of a `WorkerSleep`: each one informs other components before and after it, and
// calls `WorkerMemory`.

extension WorkerSleep {
  static let unwatched = "its inputs aren't watched: the outcome of its suspension was lost"
  static let noProcess = "it has no process"

  var driver: EngineDriver { sleeps.driver }
  var memory: any WorkerMemory { sleeps.memory }
  var timers: any Timers { sleeps.timers }

  func log(_ priority: DaemonLog.Priority, _ text: String) {
    sleeps.log(priority, "\(id): \(text)")
  }

  /// Reports an outcome that is known at once. It is still reported later, and not before this
  /// returns.
  func refuse<Outcome>(_ then: @escaping (Outcome) -> Void, _ outcome: Outcome) {
    timers.after(.zero) { then(outcome) }
  }

  /// Performs an operation on the worker.
  ///
  /// - Parameter then: called once; with nil if the run has ended meanwhile.
  func perform<Outcome>(
    _ operation: (WorkerSleep, @escaping (Outcome) -> Void) -> Void,
    then: @escaping (Outcome?) -> Void
  ) {
    var isDelivered = false
    begin { sleep, done in
      operation(sleep) { outcome in
        done(outcome)
        if !isDelivered { then(nil) }
      }
    } then: {
      isDelivered = true
      then($1)
    }
  }

  /// Suspends the worker. The outcome is reported when the engine also knows how much space the
  /// images may use.
  func stop(then: @escaping (Result<Asleep, Refusal>) -> Void) {
    guard let worker, let target = worker.target() else {
      return refuse(then, .failure(Refusal(text: Self.noProcess)))
    }
    let job = SuspendJob(
      of: worker, target, unreadBaseline: watch.unreadBaseline,
      as: driver.state.snapshot(of: id, at: timers.now))
    worker.traffic = nil
    var (result, isRead): (Result<Asleep, Refusal>?, Bool) = (nil, false)
    let end = { if isRead, let result { then(result) } }
    // The worker may be hibernated next.
    sleeps.imageDisk.sendReading {
      isRead = true
      end()
    }
    current = memory.suspend(job, missing: missing) { [weak worker, root = target.root] in
      let process = worker?.process
      if let opened = $0.opened, process?.identity == root { process?.store(opened) }
      result = $0.result
      end()
    }
  }

  /// Prepares the sleep: the worker has just been suspended, and the engine learns that next. Its
  /// inputs are watched from now on.
  func didFallAsleep(_ asleep: Asleep) {
    guard let worker, !watch.isOver else { return }
    worker.asleepSince = timers.now
    if let measurement = asleep.measurement { worker.measuring.didSuspend(measurement) }
    watch.listen(at: asleep.sources)
    watch.recordPending(asleep.blockedPending)
    let hasClients = !asleep.sources.hasNoClients
    let rule = worker.configuration.policy.background.wakeForTimers
    watch.timer.set(asleep.times, shortest: TimerWake.shortest(rule, hasClients: hasClients))
    watch.recordStoppedWork(
      hasClients ? [] : asleep.times,
      isWriting: worker.sample.writing.isUnderWay(hasClients: hasClients, at: timers.now))
    worker.sleepers = asleep.manager?.members ?? []
    sleeps.watchManager(of: worker, asleep.manager.map { $0.reasonToWake })
    worker.conversation?.offers.recount()
  }

  func evict(
    then: @escaping (Result<(RestingImage, HibernationResult), HibernationError>) -> Void
  ) {
    guard let worker, let order = makeOrder() else { return refuse(then, .failure(.noProcess)) }
    worker.conversation?.offers.recount()
    let disk = driver.state.policy.hibernate.disk
    if sleeps.imageDisk.isShort(of: driver.state.footprint(of: id), by: disk) {
      memory.dropIdleBases()
    }
    let (timers, images, started) = (timers, sleeps.imageDisk, timers.now)
    let report = { [weak worker] (outcome: HibernationOutcome) in
      let took = timers.now - started
      then(
        outcome.result.map { summary in
          if let worker { images.record(summary, of: worker, from: outcome.before, took: took) }
          return (
            summary.image,
            HibernationResult(
              footprintBefore: outcome.before, footprintAfter: outcome.after,
              imageSize: ByteCount(Int64(summary.imageLength)), duration: took)
          )
        })
    }
    move(worker, then: report) { memory.hibernate(order, then: $0) }
  }

  /// An order to write an image of the worker now; nil: it has no process, or its end has begun.
  func makeOrder() -> HibernationOrder? {
    guard let worker, worker.ending?.hasBegun != true, let target = worker.target() else {
      return nil
    }
    defer { worker.imageRemoval = nil }
    return HibernationOrder(
      target: target, rules: worker.configuration.policy.hibernate,
      isMemoryShort: driver.state.pressure != .normal,
      footprint: worker.measuring.fromSuspension?.footprint, missing: missing,
      removal: worker.imageRemoval)
  }

  /// Begins to move memory of the worker: a measurement from before or meanwhile isn't valid.
  func move<Outcome>(
    _ worker: WorkerUnit, then: @escaping (Outcome) -> Void,
    _ begin: (@escaping (Outcome) -> Void) -> OperationFlag
  ) {
    worker.measuring.didMoveMemory()
    current = begin { [weak worker] in
      worker?.measuring.didMoveMemory()
      then($0)
    }
  }

  func thaw(isStopped: Bool, then: @escaping (String?) -> Void) {
    guard let worker, let target = worker.target() else { return refuse(then, Self.noProcess) }
    worker.conversation?.offers.dropRestored()
    worker.measuring.didMoveMemory()
    current = memory.thaw(target, isStopped: isStopped, missing: missing, then: then)
  }

  func restore(
    from image: ImageOnDisk, then: @escaping (Result<ResumeSummary, HibernationError>) -> Void
  ) {
    guard let worker, let target = worker.target() else {
      return refuse(then, .failure(.noProcess))
    }
    worker.conversation?.offers.dropRestored()
    move(worker, then: then) {
      memory.restore(target, from: image, keepsBase: worker.keepsBase, then: $0)
    }
  }

  func recover(expecting: ImageExpectation, then: @escaping (RecoveryOutcome) -> Void) {
    guard let worker, let target = worker.target() else {
      return refuse(then, RecoveryOutcome(result: .failure(.noProcess)))
    }
    worker.conversation?.offers.dropRestored()
    move(worker, then: then) { memory.recover(target, expecting: expecting, then: $0) }
  }

  func findInputs(then: @escaping (Result<any WakeInputs, SystemCallError>) -> Void) {
    guard let worker, let target = worker.target() else {
      return refuse(then, .failure(SystemCallError("pidfd_open", on: "\(id)", code: ESRCH)))
    }
    current = memory.findInputs(
      of: target, daemonSockets: worker.daemonSockets, answering: worker.answeredPorts, then: then)
  }

  func inspectMemory(then: @escaping (SurvivorState) -> Void) {
    guard let target = worker?.target() else { return refuse(then, .inDoubt) }
    current = memory.inspect(target, lastImage: resumeMethod.image, then: then)
  }

  /// Completes a wake, before the engine learns of it.
  ///
  /// - Parameter why: the reason as a clause, if it isn't the engine's cause.
  func didWake(reason: String? = nil, fromImage: Bool = false) {
    guard let worker else { return }
    if reason == nil { watch.stop() }
    releaseMasters(worker.run.masters)
    let asleep = worker.asleepSince.map { timers.now - $0 } ?? .zero
    worker.asleepSince = nil
    worker.conversation?.didResume(after: asleep, reason: reason)
    guard fromImage else { return }
    sleeps.imageDisk.didRemoveImage(of: id.name, keepsBase: worker.keepsBase)
    sleeps.imageDisk.sendReading()
  }

  /// Handles a failed wake: the worker still sleeps, and the cause of its wake still exists.
  func stayAsleep() {
    watch.repeatWake()
    wakeWhenReleased()
    wakeIfUnwatched()
  }

  /// Wakes the worker again after 1 s, if a thread was in a ptrace stop of the daemon. Such a
  /// thread is released as soon as possible, and then the worker has to be woken again.
  private func wakeWhenReleased() {
    guard Stragglers.shared.hasAny else { return }
    timers.after(.seconds(1)) { [driver, id] in
      guard driver.state.state(of: id)?.sleeps == true else { return }
      driver.send(.wakeNeeded(id, "the release of a thread from an earlier hibernation"))
    }
  }

  func wakeIfUnwatched(_ call: String = unwatched) {
    if !isOver, !watch.isWatching { driver.send(.wakeNeeded(id, call)) }
  }

  private func releaseMasters(_ masters: PreforkMasters) {
    guard masters.areStopped else { return }
    timers.after(PreforkMasters.grace) { [memory, id, weak masters] in
      if let masters { memory.release(masters, of: id.name) }
    }
  }
}

extension WorkerUnit {
  /// Calls the action when the worker knows that it will be suspended, and has had time to react.
  /// If the suspension is withdrawn meanwhile, the action isn't called.
  func afterNotification(_ action: @escaping () -> Void) {
    guard let conversation = run.conversation else { return action() }
    conversation.willSuspend(then: action)
  }
}

extension ResumeSummary {
  /// The bytes that are still missing; nil: all memory is restored.
  var stillMissing: MissingBytes? { backgroundFill > 0 ? missing : nil }
}
