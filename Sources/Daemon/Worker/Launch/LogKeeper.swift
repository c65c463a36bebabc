import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

/// Rotates logs that grow over `output.max_size` while their worker runs, and notes their sizes with the time.
///
/// A log is looked at with each sample of its worker, and soon after it was written to: a worker may write a
/// gigabyte in a second. Where the kernel doesn't report writes, only the samples are left. Belongs to the
/// loop's thread.
final class LogKeeper {
  /// A disk that is full now may not be in a minute.
  static let pause = Duration.seconds(60)

  private let timers: any Timers
  /// From a rotation, or from a write that the kernel reports, to the next look.
  static let hurry = Duration.milliseconds(10)
  /// The same where looks at each log that is written to would cost too much, because there are many.
  static let leastHurry = Duration.seconds(1)

  enum Outcome: Equatable {
    case small
    /// It was over its limit.
    case rotated
    case failed(String)
  }

  /// On another thread, for as long as it takes; `then` is called on the loop. `watch` is the number under
  /// which the log's next write will be reported.
  typealias Look = (
    WorkerID, LogRotation, _ then: @escaping (_ outcome: Outcome, _ watch: Int32?) -> Void
  ) -> Void
  private let rotate: Look
  /// The same; it can't fail.
  private let note: (WorkerID, LogPlace, _ then: @escaping () -> Void) -> Void
  private let unwatch: (Int32) -> Void
  private let log: (DaemonLog.Priority, String) -> Void
  /// Whether a worker runs, so that its log may be rotated.
  var mayTouch: (WorkerID) -> Bool = { _ in true }
  private var underWay: Set<WorkerID> = []
  /// When to try again, after a failure.
  private var pauses: [WorkerID: Instant] = [:]
  /// Logs with a limit, of workers that run.
  private var rotations: [WorkerID: LogRotation] = [:]
  private var watches: [Int32: WorkerID] = [:]
  /// Reported before the look that awaited the write has returned.
  private var unclaimed: Set<Int32> = []
  /// Their last look may have been before a write.
  private var written: Set<WorkerID> = []
  /// How many logs are looked at soon because they were written to.
  private var hurried = 0

  init(
    _ timers: any Timers, rotate: @escaping Look,
    note: @escaping (WorkerID, LogPlace, _ then: @escaping () -> Void) -> Void = { $2() },
    unwatch: @escaping (Int32) -> Void = { _ in },
    log: @escaping (DaemonLog.Priority, String) -> Void
  ) {
    self.timers = timers
    self.rotate = rotate
    self.note = note
    self.unwatch = unwatch
    self.log = log
  }

  /// - Parameter times: where the times of a worker's log are noted.
  convenience init(_ services: Services, times: @escaping (WorkerID) -> String) {
    let writes = LogWrites(services.loop)
    self.init(services.loop) { [jobs = services.jobs] id, rotation, then in
      let times = LogTimes(path: times(id))
      let watch = writes.watch
      // As long as it takes: a large log and a slow disk take seconds.
      jobs.run(about: "log size of \(id)", within: .seconds(3600)) {
        // First: a write after the look is reported. Without it the log is looked at with each sample.
        let number = watch.flatMap { try? rotation.place.awaitWrite($0) }
        var outcome = Outcome.small
        let failure = failureText {
          if try rotation.rotateIfTooLarge() { outcome = .rotated }
        }
        // Without a note `logs --since` shows more; the next sample makes one.
        try? times.note(rotation.place, at: Int64(time(nil)))
        return (failure.map { .failed($0) } ?? outcome, number)
      } then: { (outcome: JobOutcome<(Outcome, Int32?)>) in
        if case .done(let (outcome, number)) = outcome {
          then(outcome, number)
        } else {
          then(.small, nil)
        }
      }
    } note: { [jobs = services.jobs] id, place, then in
      let times = LogTimes(path: times(id))
      jobs.run(about: "log times of \(id)", within: .seconds(3600)) {
        // As above.
        try? times.note(place, at: Int64(time(nil)))
      } then: { _ in
        then()
      }
    } unwatch: {
      writes.watch?.drop($0)
    } log: { [log = services.log] in
      log($0, $1)
    }
    writes.report = { [weak self] in self?.haveHappened($0) }
  }

  /// At each sample of a running worker, and when its launch has ended: until then its log is read for readiness,
  /// and isn't touched.
  func keepSmall(_ worker: WorkerUnit) {
    guard let process = worker.process else { return }
    keepSmall(process.plan.logPlace, of: worker.id, worker.configuration.output)
  }

  func keepSmall(_ place: LogPlace, of id: WorkerID, _ output: WorkerOutput) {
    let now = timers.now
    pauses = pauses.filter { $0.value >= now }
    guard pauses[id] == nil, underWay.insert(id).inserted else { return }
    guard let limit = output.maxSize else {
      forget(id)
      return note(id, place) { [weak self] in self?.underWay.remove(id) }
    }
    var place = place
    place.keep = output.keep
    let rotation = LogRotation(place, limit: limit.bytes)
    rotations[id] = rotation
    look(rotation, of: id)
  }

  /// Its run has ended: writes to its log aren't awaited any more.
  func forget(_ id: WorkerID) {
    guard rotations.removeValue(forKey: id) != nil else { return }
    written.remove(id)
    for (number, owner) in watches where owner == id {
      watches[number] = nil
      unwatch(number)
    }
  }

  private func look(_ rotation: LogRotation, of id: WorkerID) {
    rotate(id, rotation) { [weak self] outcome, watch in
      guard let self else { return }
      if let watch { claim(watch, for: id) }
      didLook(at: id, outcome: outcome)
    }
  }

  private func didLook(at id: WorkerID, outcome: Outcome) {
    guard underWay.contains(id) else { return }
    if outcome == .rotated { return lookAgain(at: id, after: Self.hurry) }
    underWay.remove(id)
    if written.remove(id) != nil { lookSoon(at: id) }
    guard case .failed(let failure) = outcome else { return }
    pauses[id] = timers.now + Self.pause
    log(.warning, "\(id): its log is over output.max_size and can't be rotated: \(failure)")
  }

  /// - Parameter then: before anything else.
  private func lookAgain(
    at id: WorkerID, after delay: Duration, then: @escaping () -> Void = {}
  ) {
    timers.after(delay) { [weak self] in
      then()
      guard let self, underWay.contains(id) else { return }
      // Its next run may have begun, whose log is read for readiness.
      guard let rotation = rotations[id], mayTouch(id) else { return _ = underWay.remove(id) }
      written.remove(id)
      look(rotation, of: id)
    }
  }

  // MARK: writes that the kernel reports

  private func claim(_ number: Int32, for id: WorkerID) {
    guard rotations[id] != nil else { return unwatch(number) }
    watches[number] = id
    if unclaimed.remove(number) != nil { recordWrite(at: number) }
  }

  /// What the kernel reports.
  func haveHappened(_ reports: WriteWatch.Reports) {
    for number in reports.written { recordWrite(at: number) }
    for number in reports.ended { watches[number] = nil }
  }

  private func recordWrite(at number: Int32) {
    guard let id = watches.removeValue(forKey: number) else {
      unclaimed.insert(number)
      return
    }
    lookSoon(at: id)
  }

  /// The more logs are written to, the later each is looked at: there are at most about a hundred such looks in
  /// a second.
  private func lookSoon(at id: WorkerID) {
    guard pauses[id] == nil else { return }
    guard underWay.insert(id).inserted else { return _ = written.insert(id) }
    hurried += 1
    lookAgain(at: id, after: min(Self.hurry * hurried, Self.leastHurry)) { [weak self] in
      self?.hurried -= 1
    }
  }
}

/// The kernel's reports of writes to logs. The watch is made for the first log that has a limit: an ordinary user
/// may have few of them. Belongs to the loop's thread.
private final class LogWrites {
  private let loop: any DescriptorWatches
  var report: (WriteWatch.Reports) -> Void = { _ in }

  init(_ loop: any DescriptorWatches) { self.loop = loop }

  /// nil: the user's limit is reached.
  private(set) lazy var watch: WriteWatch? = {
    // Without it each log is looked at with each sample.
    guard let watch = try? WriteWatch() else { return nil }
    do {
      _ = try loop.whenReadable(watch.descriptor) { [unowned self] in report(watch.take()) }
    } catch { return nil }
    return watch
  }()
}
