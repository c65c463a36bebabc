import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

/// Rotates logs that exceed `output.max_size` while their worker runs, and records their sizes with
/// the time.
///
/// A log is checked with each sample of its worker, and soon after it was written to, since a
/// worker may write a gigabyte in a second. If the kernel doesn't report writes, only the samples
/// remain. Belongs to the loop's thread.
final class LogKeeper {
  /// The time between a failure and the next attempt: a disk that is full now may not be full in a
  /// minute.
  static let pause = Duration.seconds(60)

  private let timers: any Timers
  /// The time from a rotation, or from a write that the kernel reports, to the next check.
  static let checkDelay = Duration.milliseconds(10)
  /// The longest such time. It grows up to this if many logs are written to, because checks of all
  /// of them would cost too much.
  static let maxCheckDelay = Duration.seconds(1)

  enum Outcome: Equatable {
    case small
    /// The log exceeded its limit.
    case rotated
    case failed(String)
  }

  /// Records the size of a log on another thread, for as long as that takes, and rotates it if it
  /// has a limit and exceeds it. `then` is called on the loop. `watch` is the number under which
  /// the log's next write will be reported.
  typealias Check = (
    WorkerID, LogDestination, LogRotation?,
    _ then: @escaping (_ outcome: Outcome, _ watch: Int32?) -> Void
  ) -> Void
  private let performCheck: Check
  private let unwatch: (Int32) -> Void
  private let log: (DaemonLog.Priority, String) -> Void
  /// Returns whether a worker runs, so that its log may be rotated.
  var mayRotate: (WorkerID) -> Bool = { _ in true }
  private var checking: Set<WorkerID> = []
  /// The time of the next attempt after a failure.
  private var pauses: [WorkerID: Instant] = [:]
  /// Logs with a limit, of workers that run.
  private var rotations: [WorkerID: LogRotation] = [:]
  private var watches: [Int32: WorkerID] = [:]
  /// The numbers of writes that were reported before the check that requested the report has
  /// returned.
  private var unclaimed: Set<Int32> = []
  /// Workers whose log may have been written to after its last check.
  private var written: Set<WorkerID> = []
  /// How many logs will be checked soon because they were written to.
  private var scheduledChecks = 0

  init(
    _ timers: any Timers, log: @escaping (DaemonLog.Priority, String) -> Void,
    check: @escaping Check, unwatch: @escaping (Int32) -> Void = { _ in }
  ) {
    self.timers = timers
    performCheck = check
    self.unwatch = unwatch
    self.log = log
  }

  /// - Parameter times: returns the path of the file that records the sizes of a worker's log.
  convenience init(_ services: Services, times: @escaping (WorkerID) -> String) {
    let writes = LogWrites(services.loop)
    self.init(services.loop, log: services.log.callAsFunction) {
      [jobs = services.jobs] id, destination, rotation, then in
      let times = LogTimes(path: times(id))
      let watch = rotation == nil ? nil : writes.watch
      // An hour is as good as no limit: a large log on a slow disk takes seconds.
      jobs.run(about: "log size of \(id)", within: .seconds(3600)) {
        // The report is requested first, so that a write after the check is reported. Without it
        // the log is checked with each sample.
        let number = watch.flatMap { try? destination.awaitWrite($0) }
        var outcome = Outcome.small
        let failure = failureText {
          if try rotation?.rotateIfTooLarge() == true { outcome = .rotated }
        }
        // Without this record, `logs --since` shows more lines; the next sample makes one.
        try? times.record(destination, at: Int64(time(nil)))
        return (failure.map { .failed($0) } ?? outcome, number)
      } then: { (outcome: JobOutcome<(Outcome, Int32?)>) in
        if case .done(let (outcome, number)) = outcome {
          then(outcome, number)
        } else {
          then(.small, nil)
        }
      }
    } unwatch: {
      writes.watch?.removeWatch($0)
    }
    writes.report = { [weak self] in self?.didReceive($0) }
  }

  /// Checks the worker's log. Called at each sample of a running worker, and when its launch has
  /// ended: until then the log is read for readiness, and isn't rotated.
  func checkLog(_ worker: WorkerUnit) {
    guard let process = worker.process else { return }
    checkLog(process.plan.logDestination, of: worker.id, worker.configuration.output)
  }

  func checkLog(_ destination: LogDestination, of id: WorkerID, _ output: WorkerOutput) {
    let now = timers.now
    pauses = pauses.filter { $0.value >= now }
    guard pauses[id] == nil, checking.insert(id).inserted else { return }
    guard let limit = output.maxSize else {
      forget(id)
      return check(destination, of: id)
    }
    var destination = destination
    destination.keep = output.keep
    rotations[id] = LogRotation(destination, limit: limit.bytes)
    check(destination, of: id)
  }

  /// The run has ended: writes to its log aren't awaited any more.
  func forget(_ id: WorkerID) {
    guard rotations.removeValue(forKey: id) != nil else { return }
    written.remove(id)
    for (number, owner) in watches where owner == id {
      watches[number] = nil
      unwatch(number)
    }
  }

  private func check(_ destination: LogDestination, of id: WorkerID) {
    performCheck(id, destination, rotations[id]) { [weak self] outcome, watch in
      guard let self else { return }
      if let watch { claim(watch, for: id) }
      guard checking.contains(id) else { return }
      if outcome == .rotated { return checkLater(at: id, after: Self.checkDelay) }
      checking.remove(id)
      if written.remove(id) != nil { checkSoon(at: id) }
      guard case .failed(let failure) = outcome else { return }
      pauses[id] = timers.now + Self.pause
      log(.warning, "\(id): its log is over output.max_size and can't be rotated: \(failure)")
    }
  }

  /// - Parameter then: called before the check.
  private func checkLater(
    at id: WorkerID, after delay: Duration, then: @escaping () -> Void = {}
  ) {
    timers.after(delay) { [weak self] in
      then()
      guard let self, checking.contains(id) else { return }
      // The worker's next run may have begun, whose log is read for readiness.
      guard let rotation = rotations[id], mayRotate(id) else { return _ = checking.remove(id) }
      written.remove(id)
      check(rotation.destination, of: id)
    }
  }

  // MARK: writes that the kernel reports

  private func claim(_ number: Int32, for id: WorkerID) {
    guard rotations[id] != nil else { return unwatch(number) }
    watches[number] = id
    if unclaimed.remove(number) != nil { recordWrite(at: number) }
  }

  /// Handles the kernel's reports of writes.
  func didReceive(_ reports: WriteWatch.Reports) {
    for number in reports.written { recordWrite(at: number) }
    for number in reports.ended { watches[number] = nil }
  }

  private func recordWrite(at number: Int32) {
    guard let id = watches.removeValue(forKey: number) else {
      unclaimed.insert(number)
      return
    }
    checkSoon(at: id)
  }

  /// Schedules a check soon. The more logs are written to, the later each one is checked: there are
  /// at most about 100 such checks per second.
  private func checkSoon(at id: WorkerID) {
    guard pauses[id] == nil else { return }
    guard checking.insert(id).inserted else { return _ = written.insert(id) }
    scheduledChecks += 1
    checkLater(at: id, after: min(Self.checkDelay * scheduledChecks, Self.maxCheckDelay)) {
      [weak self] in
      self?.scheduledChecks -= 1
    }
  }
}

/// The kernel's reports of writes to logs. The watch is created for the first log that has a limit,
/// since the kernel limits the number of an ordinary user's watches. Belongs to the loop's thread.
private final class LogWrites {
  private let loop: any DescriptorWatches
  var report: (WriteWatch.Reports) -> Void = { _ in }

  init(_ loop: any DescriptorWatches) { self.loop = loop }

  /// nil: the user's limit is reached.
  private(set) lazy var watch: WriteWatch? = {
    // Without a watch, each log is checked with each sample.
    guard let watch = try? WriteWatch() else { return nil }
    do {
      _ = try loop.whenReadable(watch.descriptor) { [unowned self] in report(watch.readReports()) }
    } catch { return nil }
    return watch
  }()
}
