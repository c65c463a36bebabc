import Control
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import Synchronization

/// What other threads do to the processes and the memory of workers. `KernelMemory` is the real
/// implementation; tests have a fake.
///
/// `then` is called on the loop, once, and never before the method returns. A worker has one
/// operation at a time: the caller waits for an outcome before it begins another operation.
protocol WorkerMemory {
  /// Stops the worker, and finds its inputs. If this fails, the worker runs, unless the refusal
  /// says that it is still stopped.
  ///
  /// - Parameter missing: the memory that a lazy restore of the worker hasn't restored yet, or that
  ///   is in the image of a trim, where it stays. A lazy restore is awaited first.
  func suspend(
    _ job: SuspendJob, missing: MissingBytes?, then: @escaping (SuspensionOutcome) -> Void
  ) -> OperationFlag

  /// Hibernates a suspended worker. The image gets its name when a later daemon would find the
  /// worker.
  func hibernate(_ order: HibernationOrder, then: @escaping (HibernationOutcome) -> Void)
    -> OperationFlag

  /// Moves memory of a running worker to swap, or to an image. The worker continues to run.
  func trim(_ order: TrimOrder, then: @escaping (TrimOutcome) -> Void) -> OperationFlag

  /// Moves all memory of a running worker that is in swap, or in the image of a trim, back into
  /// RAM.
  func fill(
    _ target: HibernationTarget, then: @escaping (Result<TrimSummary, HibernationError>) -> Void
  ) -> OperationFlag

  /// Lets the worker run. `then` gets the reason if that failed.
  ///
  /// - Parameter missing: the memory that is in the image of a trim, where it stays.
  func thaw(
    _ target: HibernationTarget, isStopped: Bool, missing: MissingBytes?,
    then: @escaping (_ failure: String?) -> Void
  ) -> OperationFlag

  /// Restores the worker's memory, and lets it run. The image is removed only when the worker's
  /// record on the disk says that it isn't needed.
  func restore(
    _ target: HibernationTarget, from image: ImageOnDisk, keepsBase: Bool,
    then: @escaping (Result<ResumeSummary, HibernationError>) -> Void
  ) -> OperationFlag

  /// Verifies the worker's memory, whatever state it is in, writes back what is missing, and lets
  /// the worker run.
  func recover(
    _ target: HibernationTarget, expecting: ImageExpectation,
    then: @escaping (RecoveryOutcome) -> Void
  ) -> OperationFlag

  /// Determines the state of a sleeping worker: `asleep`, or `inDoubt` if it isn't certain.
  ///
  /// - Parameter lastImage: the image with the worker's memory, according to the last operation.
  func inspect(
    _ target: HibernationTarget, lastImage: ImageOnDisk?, then: @escaping (SurvivorState) -> Void
  ) -> OperationFlag

  /// Continues the masters of a prefork server, after its children.
  func release(_ masters: PreforkMasters, of name: String)

  /// Moves the worker's remaining operations, such as a hibernation, before work that no client
  /// waits for.
  func prioritize(_ name: String)

  /// Removes the image of a worker that has ended. The returned closure waits for that; it is
  /// called before the next image is written, and not on the loop's thread.
  ///
  /// - Parameter isUnreadableNeeded: an image that can't be read is kept.
  func removeImage(
    of name: String, isUnreadableNeeded: Bool, then: (() -> Void)?
  ) -> @Sendable () -> Void

  /// Removes the bases that running workers have left on the disk for their next images. Later
  /// operations wait for that.
  func dropIdleBases()

  // MARK: workers that another daemon or supervisor has started

  /// Opens a pidfd of the process. Its memory isn't opened yet. The error ESRCH means that the
  /// process has ended.
  func openProcess(
    _ process: ProcessIdentity, _ plan: LaunchPlan
  ) throws(SystemCallError) -> WorkerProcess

  /// Finds all processes of the worker. Outside a cgroup, this is called only while the daemon
  /// starts.
  func tree(of process: WorkerProcess) throws(SystemCallError) -> ProcessTree

  /// Opens the memory of all processes of the worker, with what an earlier daemon has opened. Like
  /// the methods below, except `findInputs`, this is called only while the daemon starts.
  func openMemories(of process: WorkerProcess) throws(SystemCallError)

  /// Determines where the memory of a worker of an earlier daemon is.
  func survivorState(of target: HibernationTarget, by record: WorkerRecord) -> SurvivorState

  /// Finds the inputs that can wake a worker that continues to sleep.
  func findInputs(
    of target: HibernationTarget, daemonSockets: Set<String>, answering ports: Set<UInt16>,
    then: @escaping (Result<any WakeInputs, SystemCallError>) -> Void
  ) -> OperationFlag

  /// Removes the image of a worker that has ended, and the processes that are left in its cgroup.
  func removeRemains(of record: WorkerRecord)

  /// Removes images whose workers don't exist any more.
  func removeOrphanedImages(except isRecorded: (String) -> Bool)

  /// Gives running workers their missing pages that couldn't be adopted: their earlier pager ends
  /// when this daemon has started, and their threads would wait for ever.
  func serveUnadopted(except isManaged: (String) -> Bool)
}

/// Whether an operation is running on its thread. If this is false while a caller still waits, the
/// outcome was lost.
final class OperationFlag: Sendable {
  private let state = Atomic(true)
  var isRunning: Bool { state.load(ordering: .acquiring) }
  func end() { state.store(false, ordering: .releasing) }
}

/// The outcome of a suspension.
struct SuspensionOutcome: Sendable {
  /// The memory files that could be opened before the suspension; nil: none.
  var opened: MemoryRefresh.Outcome?
  var result: Result<Asleep, Refusal>
}

/// The text of an error, because errors themselves aren't sendable.
struct Refusal: Error {
  let text: String
  /// Why the worker is still stopped although the operation has failed; nil: it is as it was
  /// before.
  var stillStopped: String?
  /// The worker works by its own timers, and its policy trims it.
  var staysAwake = false
}

/// What a hibernation and the image of a trim need.
struct HibernationOrder {
  var target: HibernationTarget
  var rules: HibernationRules
  /// True: the image doesn't stay in the page cache, and the working set doesn't stay in memory.
  var isMemoryShort: Bool
  /// The footprint before the hibernation; nil: it is measured right before.
  var footprint: ByteCount?
  /// The memory in the image of a trim.
  var missing: MissingBytes?
  /// Waits until the images of an earlier run have been removed.
  var removal: (@Sendable () -> Void)?
}

struct TrimOrder {
  /// How an image is written.
  var image: HibernationOrder
  var mechanism: TrimRules.Mechanism
  /// Why no image may be written; nil: the disk has room.
  var diskObstacle: String?
}

/// The outcome of a trim, and the length of the image that it wrote; nil: it wrote none.
struct TrimOutcome: Sendable {
  var result: Result<TrimSummary, HibernationError>
  var imageLength: Int64?
}

/// The outcome of a hibernation, and the footprints before and after it.
struct HibernationOutcome: Sendable {
  var result: Result<HibernationSummary, HibernationError>
  var before: ByteCount
  var after: ByteCount
}

/// The outcome of a recovery.
struct RecoveryOutcome: Sendable {
  var result: Result<ResumeSummary, HibernationError>
  /// The image that is left afterwards.
  var image: ImageOnDisk?
}

extension HibernationError {
  static var noProcess: HibernationError {
    HibernationError(.checking, "it has no process", aftermath: .vanished)
  }
}

/// The image of a hibernated worker, which contains all of its memory.
struct ImageOnDisk: Sendable {
  var resting: RestingImage
  /// The bytes that it uses on the disk; nil: they aren't recorded.
  var length: Int64?

  var path: String { resting.path }
}

extension ImageOnDisk {
  init(path: String, length: Int64? = nil) {
    self.init(resting: RestingImage(path: path), length: length)
  }
}

/// Where the memory of a worker is, which determines how it is resumed. It is set when the worker
/// is suspended or hibernated, or when it is found asleep.
enum ResumeMethod: Sendable {
  /// All memory is in the worker's processes, or stays out of RAM. `mayBeStopped`: a hibernation
  /// was tried since the suspension, and it stops the worker by signal for some time.
  case thaw(mayBeStopped: Bool)
  /// The memory is restored from this image, as the plan in the image says.
  case image(ImageOnDisk)
  /// An earlier daemon has left the worker asleep, or its wake failed half-way: its memory is
  /// verified before it runs. nil: no image of it is known, or memory is in the image of a trim.
  case recover(ImageOnDisk?)
  /// The worker's memory can't be verified. It never runs again.
  case unverified

  var image: ImageOnDisk? {
    switch self {
    case .image(let image): image
    case .recover(let image): image
    case .thaw, .unverified: nil
    }
  }

  /// The state while a hibernation is tried. An earlier daemon may have trimmed the worker.
  func afterHibernationAttempt(isTrimmed: Bool) -> ResumeMethod {
    if case .recover = self, isTrimmed { return self }
    return .thaw(mayBeStopped: true)
  }

  /// The state after the image turned out not to exist.
  var withoutImage: ResumeMethod {
    switch self {
    case .image, .thaw: .thaw(mayBeStopped: true)
    case .recover: .recover(nil)
    case .unverified: .unverified
    }
  }
}

extension CodedText {
  /// How a worker's memory is restored, for `status`.
  static func of(_ plan: RestorePlan) -> CodedText {
    plan.isLazy ? CodedText("lazy", "lazily (\(plan.reason))") : .eager(plan.reason)
  }

  static func eager(_ reason: String) -> CodedText { CodedText("eager", "in full (\(reason))") }
}
