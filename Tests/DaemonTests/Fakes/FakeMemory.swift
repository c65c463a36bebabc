import Glibc
import Lifecycle
import Linux
import Supervision

@testable import Daemon
@testable import Hibernation

/// The memory of one worker. Operations have no outcome until the test reports one.
final class FakeMemory: WorkerMemory {
  private(set) var asked: [String] = []
  private(set) var prioritized = 0
  private var current = OperationFlag()
  private(set) var suspended: ((SuspensionOutcome) -> Void)?
  private(set) var hibernated: ((HibernationOutcome) -> Void)?
  private(set) var thawed: ((String?) -> Void)?
  private(set) var restored: ((Result<ResumeSummary, HibernationError>) -> Void)?
  private(set) var recovered: ((RecoveryOutcome) -> Void)?
  private(set) var inspected: ((SurvivorState) -> Void)?

  // Workers that another daemon or supervisor has started. The test's own process represents each
  // of them.
  /// Whether the worker's process ends right before it is opened.
  var endsWhenOpened: (String) -> Bool = { _ in false }
  var rests: [String: SurvivorState] = [:]
  /// The running workers that have missing pages, and those of them that are served unadopted.
  var trimmedWorkers: [String] = []
  private(set) var servedUnadopted: [String] = []
  var tree = ProcessTree(processes: [])
  private var recoveries: [String: (RecoveryOutcome) -> Void] = [:]
  private var searches: [String: (Result<any WakeInputs, SystemCallError>) -> Void] = [:]

  private func begin(_ what: String) -> OperationFlag {
    asked.append(what)
    current = OperationFlag()
    return current
  }

  /// Ends the operation's thread without an outcome.
  func loseOutcome() { current.end() }

  func suspend(
    _ job: SuspendJob, missing: MissingBytes?, then: @escaping (SuspensionOutcome) -> Void
  ) -> OperationFlag {
    suspended = then
    let trimmed = missing?.isTrimmed == true ? "suspend, trimmed" : "settle and suspend"
    return begin(missing == nil ? "suspend" : trimmed)
  }

  func hibernate(_ order: HibernationOrder, then: @escaping (HibernationOutcome) -> Void)
    -> OperationFlag
  {
    hibernated = then
    return begin("hibernate")
  }

  private(set) var trimmed: ((TrimOutcome) -> Void)?
  private(set) var trimOrder: TrimOrder?
  private(set) var filled: ((Result<TrimSummary, HibernationError>) -> Void)?

  func trim(_ order: TrimOrder, then: @escaping (TrimOutcome) -> Void) -> OperationFlag {
    (trimmed, trimOrder) = (then, order)
    return begin("trim")
  }

  func fill(
    _ target: HibernationTarget, then: @escaping (Result<TrimSummary, HibernationError>) -> Void
  ) -> OperationFlag {
    filled = then
    return begin("fill")
  }

  func thaw(
    _ target: HibernationTarget, isStopped: Bool, missing: MissingBytes?,
    then: @escaping (String?) -> Void
  ) -> OperationFlag {
    thawed = then
    return begin(isStopped ? "thaw, stopped" : "thaw")
  }

  func restore(
    _ target: HibernationTarget, from image: ImageOnDisk, keepsBase: Bool,
    then: @escaping (Result<ResumeSummary, HibernationError>) -> Void
  ) -> OperationFlag {
    restored = then
    return begin("restore \(image.path)")
  }

  func recover(
    _ target: HibernationTarget, expecting: ImageExpectation,
    then: @escaping (RecoveryOutcome) -> Void
  ) -> OperationFlag {
    recovered = then
    recoveries[target.name] = then
    return begin("recover")
  }

  func inspect(
    _ target: HibernationTarget, lastImage: ImageOnDisk?, then: @escaping (SurvivorState) -> Void
  ) -> OperationFlag {
    inspected = then
    return begin("inspect")
  }

  func release(_ masters: PreforkMasters, of name: String) {}
  func prioritize(_ name: String) { prioritized += 1 }
  func removeImage(
    of name: String, isUnreadableNeeded: Bool, then: (() -> Void)?
  ) -> @Sendable () -> Void {
    asked.append("remove image")
    return {}
  }
  func dropIdleBases() {}

  func openProcess(
    _ process: ProcessIdentity, _ plan: LaunchPlan
  ) throws(SystemCallError) -> WorkerProcess {
    if endsWhenOpened(plan.name) {
      throw SystemCallError("pidfd_open", on: plan.name, code: ESRCH)
    }
    // No process has such a pid, so the test's own process is used.
    let isReal = process.pid < 1 << 22
    let testProcess = try ProcessIdentity.current(of: getpid())
    return try .adopt(isReal ? process : testProcess, plan: plan)
  }
  func tree(of process: WorkerProcess) throws(SystemCallError) -> ProcessTree { tree }
  func openMemories(of process: WorkerProcess) {}
  func survivorState(of target: HibernationTarget, by record: WorkerRecord) -> SurvivorState {
    rests[record.name] ?? .inDoubt
  }
  func findInputs(
    of target: HibernationTarget, daemonSockets: Set<String>, answering ports: Set<UInt16>,
    then: @escaping (Result<any WakeInputs, SystemCallError>) -> Void
  ) -> OperationFlag {
    searches[target.name] = then
    return begin("find inputs")
  }
  func removeRemains(of record: WorkerRecord) { asked.append("remove remains of \(record.name)") }
  func removeOrphanedImages(except isRecorded: (String) -> Bool) { asked.append("remove orphans") }
  func serveUnadopted(except isManaged: (String) -> Bool) {
    servedUnadopted = trimmedWorkers.filter { !isManaged($0) }
  }

  // MARK: outcomes

  func endSearch(of name: String, _ inputs: Result<any WakeInputs, SystemCallError>) {
    searches.removeValue(forKey: name)?(inputs)
  }
  func endRecovery(of name: String, _ recovery: RecoveryOutcome) {
    recoveries.removeValue(forKey: name)?(recovery)
  }

  /// Reports that the worker's processes have stopped.
  ///
  /// - Parameter missing: what stays in the image of a trim.
  func stop(with inputs: FakeInputs, missing: MissingBytes? = nil) {
    var asleep = Asleep(sources: .success(inputs))
    asleep.missing = missing
    suspended?(SuspensionOutcome(result: .success(asleep)))
  }

  func refuseSuspension(_ refusal: Refusal) {
    suspended?(SuspensionOutcome(result: .failure(refusal)))
  }

  func evict(to image: String) { end(hibernation: .success(.forTest(image))) }

  func end(hibernation result: Result<HibernationSummary, HibernationError>) {
    hibernated?(HibernationOutcome(result: result, before: .megabytes(10), after: .kilobytes(8)))
  }
}

extension HibernationSummary {
  static func forTest(_ image: String, length: UInt64 = 100) -> HibernationSummary {
    HibernationSummary(
      image: RestingImage(path: image), moved: 0, imageLength: length, written: length,
      processes: 1, duration: .milliseconds(50))
  }
}

extension ResumeSummary {
  static let forTest = ResumeSummary(restored: 0, duration: .zero)
}
