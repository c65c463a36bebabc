import Glibc
import Lifecycle
import Policy
import Supervision

/// Rotates logs that grow over `output.max_size` while their worker runs, and notes their sizes with the time. Belongs to the loop's thread.
final class LogKeeper {
  /// A disk that is full now may not be in a minute.
  static let pause = Duration.seconds(60)

  private let timers: any Timers
  /// After a rotation the next look follows so soon, and not at the next sample: a worker may write a gigabyte
  /// in a second.
  static let hurry = Duration.milliseconds(20)

  enum Outcome: Equatable {
    case small
    /// It was over its limit.
    case rotated
    case failed(String)
  }

  /// On another thread, for as long as it takes; `then` is called on the loop.
  private let rotate: (WorkerID, LogRotation, _ then: @escaping (Outcome) -> Void) -> Void
  /// The same; it can't fail.
  private let note: (WorkerID, LogPlace, _ then: @escaping () -> Void) -> Void
  private let log: (DaemonLog.Priority, String) -> Void
  /// Whether a worker runs, so that its log may be rotated.
  var mayTouch: (WorkerID) -> Bool = { _ in true }
  private var underWay: Set<WorkerID> = []
  /// When to try again, after a failure.
  private var pauses: [WorkerID: Instant] = [:]

  init(
    _ timers: any Timers,
    rotate: @escaping (WorkerID, LogRotation, _ then: @escaping (Outcome) -> Void) -> Void,
    note: @escaping (WorkerID, LogPlace, _ then: @escaping () -> Void) -> Void = { $2() },
    log: @escaping (DaemonLog.Priority, String) -> Void
  ) {
    self.timers = timers
    self.rotate = rotate
    self.note = note
    self.log = log
  }

  /// - Parameter times: where the times of a worker's log are noted.
  convenience init(_ services: Services, times: @escaping (WorkerID) -> String) {
    self.init(services.loop) { [jobs = services.jobs] id, rotation, then in
      let times = LogTimes(path: times(id))
      // As long as it takes: a large log and a slow disk take seconds.
      jobs.run(about: "log size of \(id)", within: .seconds(3600)) {
        var outcome = Outcome.small
        let failure = failureText {
          if try rotation.rotateIfTooLarge() { outcome = .rotated }
        }
        // Without a note `logs --since` shows more; the next sample makes one.
        try? times.note(rotation.place, at: Int64(time(nil)))
        return failure.map { .failed($0) } ?? outcome
      } then: { (outcome: JobOutcome<Outcome>) in
        if case .done(let outcome) = outcome { then(outcome) } else { then(.small) }
      }
    } note: { [jobs = services.jobs] id, place, then in
      let times = LogTimes(path: times(id))
      jobs.run(about: "log times of \(id)", within: .seconds(3600)) {
        // As above.
        try? times.note(place, at: Int64(time(nil)))
      } then: { _ in
        then()
      }
    } log: { [log = services.log] in
      log($0, $1)
    }
  }

  /// At each sample of a running worker. While it launches its log is read for readiness, and isn't touched.
  func keepSmall(_ place: LogPlace, of id: WorkerID, _ output: WorkerOutput) {
    let now = timers.now
    pauses = pauses.filter { $0.value >= now }
    guard pauses[id] == nil, underWay.insert(id).inserted else { return }
    guard let limit = output.maxSize else {
      return note(id, place) { [weak self] in self?.underWay.remove(id) }
    }
    var place = place
    place.keep = output.keep
    look(LogRotation(place, limit: limit.bytes), of: id)
  }

  private func look(_ rotation: LogRotation, of id: WorkerID) {
    rotate(id, rotation) { [weak self] in self?.didLook(at: id, with: rotation, outcome: $0) }
  }

  private func didLook(at id: WorkerID, with rotation: LogRotation, outcome: Outcome) {
    guard underWay.contains(id) else { return }
    if outcome == .rotated {
      timers.after(Self.hurry) { [weak self] in
        guard let self, underWay.contains(id) else { return }
        // Its next run may have begun, whose log is read for readiness.
        if mayTouch(id) { look(rotation, of: id) } else { underWay.remove(id) }
      }
      return
    }
    underWay.remove(id)
    guard case .failed(let failure) = outcome else { return }
    pauses[id] = timers.now + Self.pause
    log(.warning, "\(id): its log is over output.max_size and can't be rotated: \(failure)")
  }
}
