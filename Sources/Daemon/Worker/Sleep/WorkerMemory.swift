import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import Synchronization

/// What threads do to the processes and the memory of workers: `KernelMemory` really does it; tests provide their own.
///
/// `then` is called on the loop, once, and never before the method returns. About one worker there is one operation at
/// a time: the caller waits for an outcome before it begins another.
protocol WorkerMemory: AnyObject {
  /// Stops it, and finds its inputs. When this fails it runs, unless the refusal says that it is still stopped.
  ///
  /// - Parameter isRestoring: the rest of its memory is still being restored, and must be there first.
  func suspend(
    _ job: SuspendJob, of name: String, isRestoring: Bool, then: @escaping (Suspended) -> Void
  ) -> Underway

  /// The image gets its name when a later daemon would find the worker.
  func hibernate(_ order: HibernationOrder, then: @escaping (Hibernated) -> Void) -> Underway

  /// Lets it run, when all of its memory is there. `then` gets the reason if that failed.
  func thaw(
    _ target: HibernationTarget, isStopped: Bool, then: @escaping (_ failure: String?) -> Void
  ) -> Underway

  /// The image isn't removed before the worker's record on the disk says so.
  func restore(
    _ target: HibernationTarget, from image: ImageOnDisk, keepsBase: Bool,
    then: @escaping (Result<ResumeSummary, HibernationError>) -> Void
  ) -> Underway

  /// Verifies its memory, whatever state it is in, writes back what is missing, and lets it run.
  func recover(
    _ target: HibernationTarget, expecting: ImageExpectation, then: @escaping (Recovered) -> Void
  ) -> Underway

  /// Its state if it rests: `.suspended` or `.hibernated`; nil: anything is in doubt.
  ///
  /// - Parameter known: the image that its memory was in when that was last known.
  func look(
    at target: HibernationTarget, known: ImageOnDisk?,
    then: @escaping (_ rest: WorkerState?, _ image: ImageOnDisk?) -> Void
  ) -> Underway

  /// The children of a prefork server run; its masters follow.
  func release(_ masters: PreforkMasters, of name: String)

  /// The worker's remaining operations, such as a hibernation, are done before work that no client waits for.
  func prioritize(_ name: String)

  /// Removes the image of a worker that has ended. The next one waits for that, by what is returned, which isn't for
  /// the loop's thread.
  ///
  /// - Parameter isUnreadableNeeded: an image that can't be read is kept.
  func removeImage(
    of name: String, isUnreadableNeeded: Bool, then: (() -> Void)?
  ) -> @Sendable () -> Void

  /// Removes what running workers have left on disk for their next images, before later operations.
  func dropIdleBases()

  // MARK: workers that another daemon or supervisor has started

  /// Its memory isn't open yet. ESRCH: it has ended.
  func hold(
    _ process: ProcessIdentity, _ plan: LaunchPlan
  ) throws(SystemCallError) -> WorkerProcess

  /// All its processes; outside a cgroup only while the daemon starts.
  func tree(of process: WorkerProcess) throws(SystemCallError) -> ProcessTree

  /// Of all its processes, with those that an earlier daemon has opened; while the daemon starts, as all below but
  /// `findInputs`.
  func openMemories(of process: WorkerProcess) throws(SystemCallError)

  func rest(of target: HibernationTarget, by record: WorkerRecord) -> SurvivorRest

  /// What can wake it while it sleeps on.
  func findInputs(
    of target: HibernationTarget, ownChannels: Set<String>, answering ports: Set<UInt16>,
    then: @escaping (Result<any WakeInputs, SystemCallError>) -> Void
  ) -> Underway

  /// Of a worker that has ended: its image, and the processes that are left in its cgroup.
  func removeRemains(of record: WorkerRecord)

  /// Removes images whose workers don't exist any more.
  func removeOrphanedImages(except isRecorded: (String) -> Bool)
}

/// An operation, until its thread reports that it has ended. False while a caller still waits: its outcome was lost.
final class Underway: Sendable {
  private let state = Atomic(true)
  var isTrue: Bool { state.load(ordering: .acquiring) }
  func end() { state.store(false, ordering: .releasing) }
}

/// What a suspension ends with.
struct Suspended: Sendable {
  /// The memories that could be opened before it; nil: none.
  var opened: MemoryRefresh.Outcome?
  var result: Result<Asleep, Refusal>
}

/// An error's text: errors themselves aren't sendable.
struct Refusal: Error {
  let text: String
  /// Why the worker is still stopped though the operation has failed; nil: it is as it was before.
  var stillStopped: String?
}

struct HibernationOrder {
  var target: HibernationTarget
  var rules: HibernationRules
  /// The image doesn't stay in the page cache.
  var dropsCache: Bool
  /// Nil: it is measured right before.
  var footprint: ByteCount?
  /// How much of its memory is still to come.
  var missing: MissingBytes?
  /// Waits until the images of an earlier run are removed.
  var removal: (@Sendable () -> Void)?
}

/// What a hibernation ends with, and the footprints before and after it.
struct Hibernated: Sendable {
  var result: Result<HibernationSummary, HibernationError>
  var before: ByteCount
  var after: ByteCount
}

/// What a recovery ends with.
struct Recovered: Sendable {
  var result: Result<ResumeSummary, HibernationError>
  /// The image that is left afterwards.
  var image: ImageOnDisk?
}

extension HibernationError {
  static var noProcess: HibernationError {
    HibernationError(.checking, "it has no process", aftermath: .vanished)
  }
}

/// A worker's image: where all of its memory is while it is hibernated.
struct ImageOnDisk: Sendable {
  var resting: RestingImage
  /// Bytes on the disk; nil where nothing has noted it.
  var length: Int64?

  var path: String { resting.path }
  /// Distinguishes it from other images; nil where that isn't noted.
  var mark: ImageMark? { resting.expectation.mark }

  init(_ resting: RestingImage, length: Int64?) {
    self.resting = resting
    self.length = length
  }

  /// - Parameter mark: nil where it isn't noted.
  init(path: String, mark: ImageMark? = nil, length: Int64? = nil) {
    self.init(RestingImage(path: path, expecting: .of(mark)), length: length)
  }
}

/// Where a worker's memory is, and so how it can be resumed: decided when it is put to rest, or found at rest,
/// and kept.
enum RestState: Sendable {
  /// All of its memory is in its processes. `mayBeStopped`: a hibernation was tried since it was suspended, which
  /// stops it by signal for a while.
  case thaw(mayBeStopped: Bool)
  /// Its memory is restored from this image, as the image's own plan says.
  case image(ImageOnDisk)
  /// An earlier daemon put it to rest, or its wake failed half-way: its memory is verified before it runs. nil:
  /// it is not known to have an image.
  case recover(ImageOnDisk?)
  /// Its memory can't be verified. It never runs again.
  case unverified

  var image: ImageOnDisk? {
    switch self {
    case .image(let image): image
    case .recover(let image): image
    case .thaw, .unverified: nil
    }
  }

  /// The same, of a worker whose image turned out not to be there.
  var withoutImage: RestState {
    switch self {
    case .image, .thaw: .thaw(mayBeStopped: true)
    case .recover: .recover(nil)
    case .unverified: .unverified
    }
  }
}
