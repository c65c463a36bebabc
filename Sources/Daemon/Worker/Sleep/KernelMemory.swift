import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import Synchronization

/// The real `WorkerMemory`: the threads of `mechanics` stop and continue processes, those of
/// `hibernation` move their memory.
final class KernelMemory: WorkerMemory {
  let services: Services
  let state: StateDirectory
  let bootID: String
  let keeper: KeeperStarter
  private let standby: StandbyStarter<Standby>
  private let resumeChoice: ResumeChoice
  private let recordPatience: Duration

  init(
    _ services: Services, _ state: StateDirectory, bootID: String,
    keeper: KeeperStarter, standby: StandbyStarter<Standby>,
    resumeChoice: ResumeChoice, recordPatience: Duration = RecordWait.patience
  ) {
    self.services = services
    self.state = state
    self.bootID = bootID
    self.keeper = keeper
    self.standby = standby
    self.resumeChoice = resumeChoice
    self.recordPatience = recordPatience
  }

  /// Makes the closure that the thread of an operation calls with the outcome.
  func callback<Outcome: Sendable>(
    _ then: @escaping (Outcome) -> Void
  ) -> (underway: Underway, done: @Sendable (Outcome) -> Void) {
    let underway = Underway()
    let back = services.loopReturn.callback(then)
    return (
      underway,
      {
        underway.end()
        back($0)
      }
    )
  }

  func suspend(
    _ job: SuspendJob, of name: String, isRestoring: Bool, then: @escaping (Suspended) -> Void
  ) -> Underway {
    let (underway, done) = callback(then)
    let hibernation = isRestoring ? services.hibernation : nil
    services.mechanics.submit(about: name) {
      // The memory is opened while that may still be permitted: a worker's children have memory,
      // too. If some memory can't be opened, the hibernation that needs it reports that.
      let opened = try? MemoryRefresh(
        root: job.identity, session: job.session, cgroup: job.cgroup
      ).perform()
      let result = Result {
        // A process that waits for a missing page can't be frozen.
        try hibernation?.awaitFill(of: name)
        return try job.run()
      }.mapError(Refusal.init(suspending:))
      done(Suspended(opened: opened, result: result))
    }
    return underway
  }

  func hibernate(_ order: HibernationOrder, then: @escaping (Hibernated) -> Void) -> Underway {
    let (target, name) = (order.target, order.target.name)
    let recordWait = RecordWait(patience: recordPatience)
    services.records.whenSaved(name) { recordWait.answer($0) }
    var request = HibernationRequest(
      target, to: state.image(of: name), by: order.rules,
      restore: resumeChoice.preference(order.rules), dropsCache: order.dropsCache)
    request.obstacle = { recordWait.obstacle(waits: $0) }
    let startKeeper = keeper.startKeeperWhereMissing()
    let (pids, missing, removal) = (Array(target.memories.keys), order.missing, order.removal)
    let before = Before(order.footprint)
    let (underway, done) = callback { [standby] (outcome: Hibernated) in
      if case .success(let summary) = outcome.result, summary.image.restore.isLazy {
        standby.startStandbyPager()
      }
      then(outcome)
    }
    services.hibernation.hibernate(
      request,
      first: {
        startKeeper()
        removal?()
        before.measure(pids, missing)
      }
    ) { result in
      // If the remaining memory can't be measured, it counts as 0.
      let after = (try? Footprint.measure(pids))?.footprint ?? 0
      done(Hibernated(result: result, before: before.footprint, after: ByteCount(after)))
    }
    return underway
  }

  /// The footprint of a worker right before it is hibernated, measured on the thread of the
  /// hibernation.
  private final class Before: Sendable {
    private let value: Mutex<ByteCount?>

    init(_ known: ByteCount?) { value = Mutex(known) }

    var footprint: ByteCount { value.withLock { $0 } ?? .zero }

    func measure(_ pids: [Int32], _ missing: MissingBytes?) {
      if value.withLock({ $0 != nil }) { return }
      let measurement = Measurement.measure(pids, missing)
      value.withLock { $0 = measurement.footprint }
    }
  }

  func thaw(
    _ target: HibernationTarget, isStopped: Bool, then: @escaping (String?) -> Void
  ) -> Underway {
    let (underway, done) = callback(then)
    services.mechanics.submit(about: target.name, isUrgent: true) {
      done(
        failureText {
          try DescriptorReserve.use {
            let tree = target.restartInterruptedSyscalls()
            try target.wake(tree, isStopped: isStopped)
          }
        })
    }
    return underway
  }

  func restore(
    _ target: HibernationTarget, from image: ImageOnDisk, keepsBase: Bool,
    then: @escaping (Result<ResumeSummary, HibernationError>) -> Void
  ) -> Underway {
    let (underway, done) = callback(then)
    // Pages are restored while the record is written: that takes a tenth of the time of a resume,
    // or more on a slow disk.
    let recorded = services.records.barrier(target.name)
    services.mechanics.performAfterAll(about: target.name) { [hibernation = services.hibernation] in
      hibernation.resume(
        target, from: image.resting, keepsBase: keepsBase, recorded: recorded, then: done)
    }
    return underway
  }

  func recover(
    _ target: HibernationTarget, expecting: ImageExpectation, then: @escaping (Recovered) -> Void
  ) -> Underway {
    let (underway, done) = callback(then)
    let path = state.image(of: target.name)
    // Earlier operations on the worker have ended.
    let recorded = services.records.barrier(target.name)
    services.mechanics.submit(about: target.name, isUrgent: true) {
      [hibernation = services.hibernation] in
      hibernation.recover(target, from: path, expecting: expecting, recorded: recorded) {
        done(Recovered(result: $0, imageAt: path))
      }
    }
    return underway
  }

  func look(
    at target: HibernationTarget, known: ImageOnDisk?,
    then: @escaping (WorkerState?, ImageOnDisk?) -> Void
  ) -> Underway {
    let path = state.image(of: target.name)
    let (underway, done) = callback { (rest: WorkerState?) in
      then(rest, rest == .hibernated ? known ?? ImageOnDisk(path: path) : nil)
    }
    services.mechanics.submit(about: target.name) {
      done(Self.rest(of: target, image: path, known: known?.resting.expectation))
    }
    return underway
  }

  private static func rest(
    of target: HibernationTarget, image path: String, known: ImageExpectation?
  ) -> WorkerState? {
    // If the volume of the image isn't mounted, the image isn't here but still exists.
    if known?.absence(of: path)?.aftermath == .intact { return .hibernated }
    if Hibernator.isAtRest(target, on: path) { return .hibernated }
    guard !fileExists(path), !fileExists(path + ".partial") else { return nil }
    return Hibernator.isAtRest(target, on: nil) ? .suspended : nil
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

extension Recovered {
  init(result: Result<ResumeSummary, HibernationError>, imageAt path: String) {
    let length = Hibernator.lengthOnDisk(of: path)
    self.init(result: result, image: length.map { ImageOnDisk(path: path, length: $0) })
  }
}

extension Refusal {
  init(suspending error: any Error) {
    if let stopped = error as? SuspendJob.StillStopped {
      self.init(text: stopped.reason, stillStopped: stopped.failure)
    } else {
      self.init(text: "\(error)")
    }
  }
}

extension HibernationRequest {
  /// - Parameter dropsCache: the image doesn't stay in the page cache.
  init(
    _ target: HibernationTarget, to path: String, by rules: HibernationRules,
    restore: ResumePreference, dropsCache: Bool
  ) {
    self.init(
      target, to: path, level: Int32(rules.compressionLevel), restore: restore,
      // Encrypted images are always complete: a base is kept only without encryption.
      overlay: rules.overlay && !rules.encrypt, isSealed: rules.encrypt,
      dropsFilePages: rules.dropFilePages,
      storage: ImageStorage(
        durability: rules.durability == .synced ? .synced : .cached, dropsCache: dropsCache))
  }
}

/// Waits until a later daemon would find a worker, that is, until the worker's record is on the
/// disk. Without a record, that daemon would remove the worker's image as that of a worker that
/// doesn't exist any more (`SurvivorRemains`), and with it the only copy of the worker's memory. So
/// a hibernation waits before its image gets its name. Its pages are read and compressed meanwhile.
/// If the record is known to be missing, the hibernation fails before it starts.
final class RecordWait: Sendable {
  /// The maximum wait of a hibernation: a client may be waiting for its end.
  static let patience = Duration.seconds(5)

  private let patience: Duration
  private let end: Deadline
  private let answer = Mutex<Bool?>(nil)
  private let isAnswered = Signal()

  init(patience: Duration = RecordWait.patience) {
    self.patience = patience
    end = Deadline(in: patience)
  }

  /// Reports that the disk has what was saved before the wait began. May be called on any thread,
  /// once.
  ///
  /// - Parameter isThere: whether there is a record of the worker.
  func answer(_ isThere: Bool) {
    answer.withLock { $0 = isThere }
    isAnswered.raise()
  }

  /// Checks for the record. Not for the loop's thread.
  ///
  /// - Parameter waits: wait for the answer, until `patience` after `init` at most.
  /// - Returns: why a later daemon may not find the worker; nil: it would find it, or that isn't
  ///   known yet and `waits` is false.
  func obstacle(waits: Bool) -> String? {
    if waits { isAnswered.wait(until: end) }
    switch answer.withLock({ $0 }) {
    case true?: return nil
    case false?:
      return
        "its record can't be written: the next daemon would not find it, and would remove its image"
    case nil:
      if !waits, !end.hasPassed { return nil }
      return
        "its record isn't on the disk after \(patience.spoken): the next daemon would not find "
        + "it, and would remove its image"
    }
  }
}
