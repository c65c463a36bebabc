import Control
import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import Synchronization

// Suspending, hibernating and resuming, each on a thread where waiting hurts nobody.

extension Daemon {
  func suspend(_ id: WorkerID) {
    guard let runtime = workers[id], let process = runtime.process, !runtime.hasExited else {
      return
    }
    let number = runtime.operations.begin()
    whenUnasked(runtime) { [unowned self] in
      whenTold(runtime, process) { [unowned self] in
        // An inspection may have ended the wait.
        if runtime.operations.isLatest(number) { suspend(runtime, process) }
      }
    }
  }

  private func suspend(_ runtime: WorkerRuntime, _ process: WorkerProcess) {
    let id = runtime.id
    var suspendJob = SuspendJob(
      identity: process.identity, session: process.session, cgroup: process.cgroup,
      ownChannels: runtime.ownChannels, leftUnread: runtime.leftUnread, waits: runtime.waits,
      dependsOnInputs: runtime.configuration.policy.foreground.mode == .activity,
      wakesForTimers: runtime.configuration.policy.background.wakeForTimers != nil,
      answeredPorts: runtime.answeredPorts)
    let cause = engine.snapshot(of: id, at: EventLoop.now)?.cause
    suspendJob.isExternal = runtime.external != nil
    suspendJob.jobs = runtime.external?.jobs
    suspendJob.mustBeIdle =
      suspendJob.dependsOnInputs && (cause == .graceOver || cause == .quietAgain)
    // An earlier daemon's worker, whose sockets Yama keeps from us: its clients would wait for ever.
    if !Yama.current.permits(process.identity.pid) { suspendJob.dependsOnInputs = true }
    runtime.isBusy = true
    if case .thaw = runtime.rest { runtime.rest = .thaw(mayBeStopped: false) }
    runtime.traffic = nil
    let hibernation = runtime.mayMissPages ? hibernation : nil
    mechanics.submit(about: id.name) { [mailbox, suspendJob, refresh = process.memoryRefresh] in
      // While it may still be opened: a worker's children have memory too.
      let opened = try? refresh.perform()
      let outcome = Result {
        // Somebody who waits for a missing page can't be frozen.
        try hibernation?.settle(id.name)
        return try suspendJob.run()
      }.mapError { Refusal(text: "\($0)") }
      mailbox.post { daemon in
        if let opened, let process = daemon.workers[id]?.process,
          process.identity == suspendJob.identity
        {
          process.take(opened)
        }
        // It may be hibernated next.
        daemon.takeDiskReading {
          daemon.isDone(runtime: id) { daemon.suspensionEnded(runtime: id, outcome) }
        }
      }
    }
  }

  /// An error's text: errors themselves aren't sendable.
  struct Refusal: Error { let text: String }

  private func suspensionEnded(
    runtime id: WorkerID, _ outcome: Result<Asleep, Refusal>
  ) {
    guard let runtime = workers[id] else { return }
    switch outcome {
    case .success(let asleep):
      runtime.mayMissPages = false
      runtime.asleepSince = EventLoop.now
      listen(for: runtime, at: asleep.sources)
      setAlarm(for: runtime, asleep.times)
      watchManager(of: runtime, asleep.manager)
      recount(runtime)
      driver.send(.suspended(id))
      wakeForWhatWaits(runtime)
    case .failure(let refusal):
      tellAwake(runtime, why: "it was not suspended: \(refusal.text)")
      driver.send(.suspendFailed(id, refusal.text))
    }
  }

  func hibernate(_ id: WorkerID) {
    guard let runtime = workers[id], !runtime.hasExited, let target = runtime.target() else {
      return
    }
    let policy = runtime.configuration.policy.hibernate
    recount(runtime)
    makeRoomOnDisk(for: engine.footprint(of: id))
    let startKeeper = startKeeperWhereMissing()
    let path = state.image(of: id.name)
    let pids = Array(target.memories.keys)
    let started = EventLoop.now
    runtime.isBusy = true
    runtime.rest.mayStop()
    runtime.measuring.memoryMoves()
    let (before, missing) = (Before(), runtime.missing)
    let removal = runtime.imageRemoval
    runtime.imageRemoval = nil
    let request = HibernationRequest(
      target, to: path, level: Int32(policy.compressionLevel), restore: resumePreference(policy),
      overlay: policy.overlay, isSealed: policy.encrypt, dropsFilePages: policy.dropFilePages,
      storage: ImageStorage(
        durability: policy.durability == .synced ? .synced : .cached,
        dropsCache: engine.pressure != .normal))
    hibernation.hibernate(
      request,
      first: {
        startKeeper([:], nil)
        removal?()
        before.take(pids, missing)
      }
    ) { [mailbox] result in
      let after = (try? Footprint.measure(pids))?.footprint ?? 0
      mailbox.post { daemon in
        daemon.isDone(runtime: id) {
          daemon.hibernationEnded(
            id, result, before: before.footprint, after: ByteCount(after), started: started)
        }
      }
    }
  }

  private func hibernationEnded(
    _ id: WorkerID, _ result: Result<HibernationSummary, HibernationError>,
    before: ByteCount, after: ByteCount, started: Instant
  ) {
    workers[id]?.measuring.memoryMoves()
    switch result {
    case .success(let summary):
      imagesWritten += 1
      imageDisk.images[id.name] = Int64(summary.imageLength)
      workers[id]?.rest = .image(summary.image)
      workers[id]?.imageLength = Int64(summary.imageLength)
      note(summary, of: id, took: EventLoop.now - started)
      if let files = summary.filePages { tell(files, of: id) }
      workers[id]?.restoreMode = .of(summary.image.restore)
      if summary.image.restore.isLazy { startStandbyPager() }
      driver.send(
        .hibernated(
          id,
          HibernationResult(
            footprintBefore: before, footprintAfter: after,
            imageSize: ByteCount(Int64(summary.imageLength)),
            duration: EventLoop.now - started)))
    case .failure(let error):
      log(.warning, "\(id): not hibernated: \(error)")
      // First of all: the engine takes it for suspended now, and may want it resumed or asked to end
      // at once, which would let it run on whatever its memory is.
      if error.aftermath == .unverifiable { killUnverified(id) }
      let permanent = error.aftermath == .ineligible || error.aftermath == .unverifiable
      driver.send(.hibernateFailed(id, error.description, permanent: permanent))
    }
  }

  private func note(_ summary: HibernationSummary, of id: WorkerID, took duration: Duration) {
    let written = Int64(summary.written)
    workers[id]?.lastHibernation = (written, Int64(summary.unchanged), duration.seconds)
    // The same for each worker and each time.
    if let why = summary.trackingRefusal, toldTrackingRefusals.insert(why).inserted {
      log(
        .info,
        "\(id): its next image takes comparing pages, because writes can't be tracked: \(why)")
    }
    ledger.add(
      bytes: written, milliseconds: duration.wholeNanoseconds / 1_000_000, at: Int64(time(nil)))
    disk.write("what is written to images can't be noted for later", log) { [ledger] in
      try ledger.save()
    }
  }

  private func tell(_ files: FilePages.Outcome, of id: WorkerID) {
    log(.info, "\(id): \(ByteCount(Int64(clamping: files.dropped))) of its files' pages left, too")
    if let refusal = files.refusal {
      log(
        .notice,
        "\(id): its files' pages stay until the kernel drops them, although "
          + "hibernate.drop_file_pages is on: \(refusal)")
    }
  }

  /// Its memory can't be verified: it is killed, and even if that fails it never runs again.
  func killUnverified(_ id: WorkerID) {
    workers[id]?.isMemoryUnverified = true
    kill(id)
  }

  func resume(_ id: WorkerID) {
    guard let runtime = workers[id], !runtime.hasExited, let target = runtime.target() else {
      return
    }
    if runtime.isMemoryUnverified {
      return driver.send(.resumeFailed(id, "its memory can't be verified", intact: false))
    }
    let started = EventLoop.now
    dropFoundOffers(runtime)
    runtime.isBusy = true
    let ended: @Sendable (Result<ResumeSummary, HibernationError>) -> Void = { [mailbox] result in
      mailbox.post { daemon in
        daemon.isDone(runtime: id) { daemon.resumeEnded(id, result, started: started) }
      }
    }
    runtime.measuring.memoryMoves()
    switch runtime.rest {
    case .recover(let path, let expected):
      afterWhatIsUnderWay(id) { [hibernation] in
        hibernation.recover(target, from: path, expecting: expected, then: ended)
      }
    case .image(let image):
      let keepsBase = runtime.keepsBase
      afterWhatIsUnderWay(id) { [hibernation] in
        hibernation.resume(target, from: image, keepsBase: keepsBase, then: ended)
      }
    case .thaw(let mayBeStopped):
      mechanics.submit(about: id.name, isUrgent: true) { [mailbox] in
        let tree = target.restartInterruptedSyscalls()
        let failure = Self.failure { try target.wake(tree, isStopped: mayBeStopped) }
        mailbox.post { daemon in
          daemon.isDone(runtime: id) { daemon.thawEnded(id, failure, started: started) }
        }
      }
    }
  }

  /// Before a worker's memory is brought back: its record says so on disk (see `WorkerRecordKeeper`), and
  /// what was begun about it, a purge for one, has ended.
  private func afterWhatIsUnderWay(_ id: WorkerID, _ body: @escaping @Sendable () -> Void) {
    let recorded = records.barrier()
    mechanics.submit(about: id.name, isUrgent: true) {
      recorded()
      body()
    }
  }

  private func thawEnded(_ id: WorkerID, _ failure: String?, started: Instant) {
    guard let runtime = workers[id] else { return }
    if let failure {
      driver.send(.resumeFailed(id, failure, intact: true))
      repeatCall(runtime)
      wakeWhenReleased(id)
    } else {
      stopListening(for: runtime)
      tellAwake(runtime)
      driver.send(.resumed(id, EventLoop.now - started))
    }
  }

  private func resumeEnded(
    _ id: WorkerID, _ result: Result<ResumeSummary, HibernationError>, started: Instant
  ) {
    workers[id]?.measuring.memoryMoves()
    switch result {
    case .success(let summary):
      if let reason = summary.eagerReason {
        workers[id]?.restoreMode = CodedText("eager", "eager, because \(reason)")
        log(.info, "\(id): all of its memory was brought back at once: \(reason)")
      }
      workers[id]?.mayMissPages = summary.backgroundFill > 0
      workers[id]?.missing = summary.missing
      workers[id]?.rest = .thaw(mayBeStopped: true)
      if let runtime = workers[id] {
        stopListening(for: runtime)
        tellAwake(runtime)
        noteResumed(runtime)
      }
      driver.send(.resumed(id, EventLoop.now - started))
    case .failure(let error):
      log(.error, "\(id): not resumed: \(error)")
      if error.phase == .waking {
        // Its memory is back, and the image gone. A second resume would look for that, and have a
        // worker killed that lacks nothing.
        workers[id]?.rest = .recover(path: state.image(of: id.name), expecting: .unknown)
      }
      // Its end is no fault of its memory, and will be told as what it is.
      let hasEnded = error.aftermath == .vanished
      let intact = error.aftermath == .intact || error.aftermath == .ineligible || hasEnded
      driver.send(.resumeFailed(id, error.description, intact: intact))
      if hasEnded { kill(id) }
      if intact, !hasEnded, let runtime = workers[id] {
        repeatCall(runtime)
        wakeWhenReleased(id)
      }
    }
  }

  /// After a wake that failed. Where a thread stood in a trace stop of ours, it is released as soon as
  /// it can be; then the worker has to be woken again.
  private func wakeWhenReleased(_ id: WorkerID) {
    guard Stragglers.shared.hasAny else { return }
    loop.after(.seconds(1)) { [unowned self] in
      guard engine.state(of: id)?.sleeps == true else { return }
      driver.send(.wakeNeeded(id, "a thread that an earlier hibernation held is being released"))
    }
  }

  /// An operation on another thread has ended: reports it, and then looks whether the worker has
  /// ended meanwhile.
  func isDone(runtime id: WorkerID, _ report: () -> Void) {
    guard let runtime = workers[id] else { return }
    runtime.isBusy = false
    report()
    if runtime.hasExited { rootHasEnded(runtime) }
  }

  static func failure(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch { return "\(error)" }
  }
}

/// What a worker takes right before it is hibernated, found on the thread that does that.
private final class Before: Sendable {
  private let value = Mutex(ByteCount.zero)

  var footprint: ByteCount { value.withLock { $0 } }

  func take(_ pids: [Int32], _ missing: MissingBytes?) {
    let measurement = Measurement.take(pids, missing)
    value.withLock { $0 = measurement.footprint }
  }
}
