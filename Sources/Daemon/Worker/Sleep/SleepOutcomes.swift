import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import Synchronization

// The outcomes that the threads that act on a worker bring back to the loop.

extension SleepOfWorker {
  /// Its state if it rests; `nil`: anything is in doubt.
  ///
  /// - Parameter known: the image that its memory was in when that was last known.
  static func rest(
    of target: HibernationTarget, image path: String, known: ImageExpectation?
  ) -> WorkerState? {
    // The image is where its volume is: not here, while that isn't mounted.
    if known?.absence(of: path)?.aftermath == .intact { return .hibernated }
    if Hibernator.isAtRest(target, on: path) { return .hibernated }
    guard !fileExists(path), !fileExists(path + ".partial") else { return nil }
    return Hibernator.isAtRest(target, on: nil) ? .suspended : nil
  }

  /// An operation, until its thread reports that it has ended.
  final class Underway: Sendable {
    private let state = Atomic(true)
    var isTrue: Bool { state.load(ordering: .acquiring) }
    func end() { state.store(false, ordering: .releasing) }
  }

  struct Suspended: Sendable {
    var opened: MemoryRefresh.Outcome?
    var result: Result<Asleep, Refusal>
  }

  struct Hibernated: Sendable {
    var result: Result<HibernationSummary, HibernationError>
    var footprint: ByteCount
  }

  struct Recovered: Sendable {
    var result: Result<ResumeSummary, HibernationError>
    /// The length of the image afterwards, in bytes on the disk; nil: there is none.
    var length: Int64?
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

extension HibernationOutcome {
  init(
    _ summary: HibernationSummary, from before: ByteCount, to after: ByteCount,
    took duration: Duration
  ) {
    let length = Int64(summary.imageLength)
    self.init(
      image: ImageOnDisk(summary.image, length: length),
      result: HibernationResult(
        footprintBefore: before, footprintAfter: after, imageSize: ByteCount(length),
        duration: duration),
      restoreMode: .of(summary.image.restore))
  }
}

extension ResumeOutcome {
  init(_ summary: ResumeSummary) {
    self.init(
      missing: summary.backgroundFill > 0 ? summary.missing : nil, eagerReason: summary.eagerReason)
  }
}

/// The footprint of a worker right before it is hibernated, measured on the thread that does that.
final class Before: Sendable {
  private let value: Mutex<ByteCount?>

  /// - Parameter known: its footprint, if it is known.
  init(_ known: ByteCount?) { value = Mutex(known) }

  var footprint: ByteCount { value.withLock { $0 } ?? .zero }

  func measure(_ pids: [Int32], _ missing: MissingBytes?) {
    if value.withLock({ $0 != nil }) { return }
    let measurement = Measurement.measure(pids, missing)
    value.withLock { $0 = measurement.footprint }
  }
}

extension HibernationError {
  static var noProcess: HibernationError {
    HibernationError(.checking, "it has no process", aftermath: .vanished)
  }
}
