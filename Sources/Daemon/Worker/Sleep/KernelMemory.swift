import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import Synchronization

/// The real `WorkerMemory`: the threads of `mechanics` stop and continue processes, those of
/// `hibernation` move their memory.
struct KernelMemory: WorkerMemory {
  let services: Services
  let state: StateDirectory
  let bootID: String
  let standby: StandbyStarter<StandbyPagerConnection>
  /// How workers are resumed, whatever their policies say; nil: the policies decide.
  let resumeOverride: ResumePreference?
  var recordTimeout = WorkerRecordKeeper.imageTimeout

  /// Makes the closure that the thread of an operation calls with the outcome.
  func callback<Outcome: Sendable>(
    _ then: @escaping (Outcome) -> Void
  ) -> (operation: OperationFlag, done: @Sendable (Outcome) -> Void) {
    let operation = OperationFlag()
    let back = services.loopReturn.callback(then)
    return (
      operation,
      {
        operation.end()
        back($0)
      }
    )
  }

  /// Runs a job about a worker on a thread of `mechanics`.
  func perform<Outcome: Sendable>(
    about name: String, isUrgent: Bool = false, then: @escaping (Outcome) -> Void,
    _ job: @escaping @Sendable () -> Outcome
  ) -> OperationFlag {
    let (operation, done) = callback(then)
    services.mechanics.submit(about: name, isUrgent: isUrgent) { done(job()) }
    return operation
  }

  func suspend(
    _ job: SuspendJob, missing: MissingBytes?, then: @escaping (SuspensionOutcome) -> Void
  ) -> OperationFlag {
    let (target, name, hibernation) = (job.target, job.target.name, services.hibernation)
    var job = job
    if missing?.isTrimmed == true {
      // The worker's memory stays in the image.
      job.freezeTrimmed = { try hibernation.freezeTrimmed(name) }
      job.wake = { [image = state.image(of: name), wake = job.wake] target, isStopped in
        try hibernation.serveTrimmed(target, image: image)
        try wake(target, isStopped)
      }
    }
    return perform(about: name, then: then) { [job] in
      // The memory is opened while that may still be permitted: a worker's children have memory,
      // too. If some memory can't be opened, the hibernation that needs it reports that.
      let opened = try? MemoryRefresh(
        root: target.root, session: target.session, cgroup: target.cgroup
      ).perform()
      let result = Result {
        // A process that waits for a missing page can't be frozen.
        if missing != nil, job.freezeTrimmed == nil { try hibernation.awaitFill(of: name) }
        return try job.run()
      }.mapError(Refusal.init(suspending:))
      return SuspensionOutcome(opened: opened, result: result)
    }
  }

  func resumePreference(_ rules: HibernationRules) -> ResumePreference {
    resumeOverride ?? ResumePreference(rawValue: rules.resume.rawValue) ?? .auto
  }

  /// A request for an image that gets its name when a later daemon would find the worker.
  ///
  /// - Parameter diskObstacle: why no image may be written; nil: the disk has room.
  func imageRequest(
    for order: HibernationOrder, diskObstacle: String? = nil
  ) -> HibernationRequest {
    let (target, rules, isMemoryShort) = (order.target, order.rules, order.isMemoryShort)
    let obstacle = services.records.imageObstacle(of: target.name, within: recordTimeout)
    let compression: Compression =
      switch rules.compressionAlgorithm {
      case .zstd: .zstd(level: Int32(rules.compressionLevel))
      case .lz4: .lz4
      }
    var request = HibernationRequest(
      target, to: state.image(of: target.name), compression: compression,
      restore: resumePreference(rules),
      // Encrypted images are always complete: a base is kept only without encryption.
      overlay: rules.overlay && !rules.encrypt, isSealed: rules.encrypt,
      dropsFilePages: rules.dropFilePages, keepsWorkingSet: rules.keepWorkingSet && !isMemoryShort,
      storage: ImageStorage(
        durability: rules.durability == .synced ? .synced : .cached, dropsCache: isMemoryShort))
    request.obstacle = { diskObstacle ?? obstacle($0) }
    return request
  }

  func hibernate(_ order: HibernationOrder, then: @escaping (HibernationOutcome) -> Void)
    -> OperationFlag
  {
    let request = imageRequest(for: order)
    let (pids, missing, removal) = (Array(order.target.memories.keys), order.missing, order.removal)
    // Unless it is known, it is measured on the thread of the hibernation.
    let before = Mutex(order.footprint)
    let (operation, done) = callback { [standby] (outcome: HibernationOutcome) in
      if case .success(let summary) = outcome.result, summary.image.restore.isLazy {
        standby.startStandbyPager()
      }
      then(outcome)
    }
    services.hibernation.hibernate(
      request,
      first: {
        removal?()
        before.withLock { $0 = $0 ?? Measurement.measure(pids, missing).footprint }
      }
    ) { result in
      // If the remaining memory can't be measured, it counts as 0. Memory that a trim has moved to
      // swap stays there, and isn't in RAM.
      let left = try? Footprint.measure(pids)
      let after = left.map { $0.footprint - $0.swapped } ?? 0
      let footprint = before.withLock { $0 } ?? .zero
      done(HibernationOutcome(result: result, before: footprint, after: ByteCount(after)))
    }
    return operation
  }

  func thaw(
    _ target: HibernationTarget, isStopped: Bool, missing: MissingBytes?,
    then: @escaping (String?) -> Void
  ) -> OperationFlag {
    let (trimRecord, path) = (state.trimRecord(of: target.name), state.image(of: target.name))
    // The wake of another worker doesn't depend on the disk of the images.
    let hibernation = missing?.isTrimmed == true ? services.hibernation : nil
    return perform(about: target.name, isUrgent: true, then: then) {
      failureText {
        try DescriptorReserve.use {
          try Hibernator.repairTrim(record: trimRecord, of: target.root)
          try hibernation?.serveTrimmed(target, image: path)
          let tree = target.restartInterruptedSyscalls()
          try target.wake(tree, isStopped: isStopped)
        }
      }
    }
  }

  func restore(
    _ target: HibernationTarget, from image: ImageOnDisk, keepsBase: Bool,
    then: @escaping (Result<ResumeSummary, HibernationError>) -> Void
  ) -> OperationFlag {
    let (operation, done) = callback(then)
    // Pages are restored while the record is written: that takes a tenth of the time of a resume,
    // or more on a slow disk.
    let recorded = services.records.barrier(target.name)
    services.mechanics.performAfterAll(about: target.name) { [hibernation = services.hibernation] in
      hibernation.resume(
        target, from: image.resting, keepsBase: keepsBase, recorded: recorded, then: done)
    }
    return operation
  }

  func recover(
    _ target: HibernationTarget, expecting: ImageExpectation,
    then: @escaping (RecoveryOutcome) -> Void
  ) -> OperationFlag {
    let (operation, done) = callback { [standby] (outcome: RecoveryOutcome) in
      if case .success(let done) = outcome.result, done.stillMissing != nil {
        standby.startStandbyPager()
      }
      then(outcome)
    }
    let path = state.image(of: target.name)
    let trimRecord = state.trimRecord(of: target.name)
    // Earlier operations on the worker have ended.
    let recorded = services.records.barrier(target.name)
    services.mechanics.submit(about: target.name, isUrgent: true) {
      [hibernation = services.hibernation] in
      do throws(HibernationError) {
        try Hibernator.repairTrim(record: trimRecord, of: target.root)
      } catch {
        return done(
          RecoveryOutcome(result: .failure(error), imageAt: path, expecting: expecting))
      }
      hibernation.recover(
        target, from: path, expecting: expecting, keepsTrims: true, recorded: recorded
      ) {
        done(RecoveryOutcome(result: $0, imageAt: path, expecting: expecting))
      }
    }
    return operation
  }

  func inspect(
    _ target: HibernationTarget, lastImage: ImageOnDisk?, then: @escaping (SurvivorState) -> Void
  ) -> OperationFlag {
    let path = state.image(of: target.name)
    return perform(about: target.name, then: then) {
      // If the volume of the image isn't mounted, the image isn't here but still exists.
      let isElsewhere = lastImage?.resting.expectation.absence(of: path)?.aftermath == .intact
      if isElsewhere || Hibernator.isAtRest(target, on: path) {
        return .asleep(.hibernated, lastImage ?? ImageOnDisk(path: path))
      }
      guard isAbsent(path), isAbsent(path + ".partial") else { return .inDoubt }
      return Hibernator.isAtRest(target, on: nil) ? .asleep(.suspended, nil) : .inDoubt
    }
  }

  func release(_ masters: PreforkMasters, of name: String) {
    services.mechanics.submit(about: name, isUrgent: true) { masters.release() }
  }

  func prioritize(_ name: String) { services.hibernation.prioritize(name) }

  /// Removes the image on the thread for small files.
  func removeImage(
    of name: String, isUnreadableNeeded: Bool, then: (() -> Void)?
  ) -> @Sendable () -> Void {
    let done = then.map { then in services.loopReturn.callback { (_: Bool) in then() } }
    return services.disk.submitAwaited { [image = state.image(of: name), log = services.log] in
      if let obstacle = Hibernator.removeUnlessNeeded(
        image, isUnreadableNeeded: isUnreadableNeeded)
      {
        log(.error, "\(name): its image \(image) is kept: \(obstacle)")
      }
      done?(true)
    }
  }

  func dropIdleBases() { services.hibernation.dropIdleBases() }
}

extension RecoveryOutcome {
  /// - Parameter expectation: what was known about the image before. After a failure it still
  ///   holds. An image that is missing because its directory isn't there counts as left.
  init(
    result: Result<ResumeSummary, HibernationError>, imageAt path: String,
    expecting expectation: ImageExpectation
  ) {
    let length = Hibernator.lengthOnDisk(of: path)
    let resting = RestingImage(path: path, expecting: expectation)
    let isLeft = length != nil || expectation.isForAnotherDirectory(than: path)
    self.init(result: result, image: isLeft ? ImageOnDisk(resting: resting, length: length) : nil)
  }
}

extension Refusal {
  init(suspending error: any Error) {
    switch error as? SuspensionRefusal {
    case .stillStopped(let reason, let failure)?: self.init(text: reason, stillStopped: failure)
    case .worksByTimer?: self.init(text: "\(error)", staysAwake: true)
    default: self.init(text: "\(error)")
    }
  }
}
