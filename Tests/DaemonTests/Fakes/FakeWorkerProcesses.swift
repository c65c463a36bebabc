import Control
import Hibernation
import Lifecycle
import Policy
import PolicyFile
import Supervision

@testable import Daemon

/// The processes of workers. Operations have no outcome until the test reports one.
final class FakeWorkerProcesses: WorkerProcesses {
  /// The operations that were begun, in order.
  private(set) var begun: [String] = []
  private(set) var woken: [(String?) -> Void] = []
  private(set) var kills: [(String?) -> Void] = []
  private(set) var scans: [(RemainingProcesses) -> Void] = []
  private(set) var clearings: [(Clearing) -> Void] = []
  private(set) var removals: [(String?) -> Void] = []
  private(set) var readings: [([String]?) -> Void] = []
  private(set) var opened: [(MemoryRefresh.Outcome) -> Void] = []
  /// The marks by which processes that have left their worker's tree are identified.
  private(set) var marks: [String] = []
  /// The exit status of root processes.
  var exit = WorkerExit.exited(0)
  /// Called before an operation is begun.
  var whenAsked: () -> Void = {}

  private func begin(_ what: String) {
    whenAsked()
    begun.append(what)
  }

  func openMemory(
    _ refresh: MemoryRefresh, of name: String, then: @escaping (MemoryRefresh.Outcome) -> Void
  ) {
    begin("open memory")
    opened.append(then)
  }

  func ask(_ process: WorkerProcess, of name: String, by signal: Int32) { begin("ask \(signal)") }

  func wake(
    _ target: HibernationTarget, _ process: WorkerProcess, missing: MissingBytes?,
    askingBy signal: Int32?, then: @escaping (String?) -> Void
  ) {
    begin(signal.map { "ask \($0) and wake" } ?? "wake")
    woken.append(then)
  }

  func kill(_ process: WorkerProcess, of name: String, then: @escaping (String?) -> Void) {
    begin("kill")
    kills.append(then)
  }

  func findRemainingProcesses(
    of process: WorkerProcess, then: @escaping (RemainingProcesses) -> Void
  ) {
    begin("scan")
    scans.append(then)
  }

  func clear(
    _ process: WorkerProcess, of name: String, mark: String, notify: String?,
    then: @escaping (Clearing) -> Void
  ) {
    begin("clear")
    marks.append(mark)
    clearings.append(then)
  }

  func reap(_ process: WorkerProcess, of name: String) -> WorkerExit {
    begin("reap")
    return exit
  }

  func removeGroup(
    of process: WorkerProcess, _ name: String, then: @escaping (String?) -> Void
  ) {
    begin("remove group")
    removals.append(then)
  }

  func readLastLines(
    of process: WorkerProcess, _ name: String, then: @escaping ([String]?) -> Void
  ) {
    begin("read log")
    readings.append(then)
  }

  // MARK: processes of other supervisors

  typealias Examination = JobOutcome<Result<ExternalProcess, AdoptionRefusal>>
  private(set) var examined: [String] = []
  private(set) var examinations: [(Examination) -> Void] = []
  private(set) var ruleScans: [RuleScan] = []
  private(set) var ruleAnswers: [(RuleScan.Outcome?) -> Void] = []
  private(set) var chosenFor: [[RuledWorker]] = []
  private(set) var choices: [([WorkerID: AdoptionRule]?) -> Void] = []
  private(set) var forgotten: [String] = []

  func examine(
    _ wanted: AdoptionSpecification, as name: String, in library: PolicyLibrary,
    within limit: Duration, then: @escaping (Examination) -> Void
  ) {
    examined.append("\(wanted.pid ?? 0) as \(name)")
    examinations.append(then)
  }

  func scan(_ scan: RuleScan, then: @escaping (RuleScan.Outcome?) -> Void) {
    ruleScans.append(scan)
    ruleAnswers.append(then)
  }

  func chooseRules(
    for workers: [RuledWorker], by matching: RuleMatching,
    then: @escaping ([WorkerID: AdoptionRule]?) -> Void
  ) {
    chosenFor.append(workers)
    choices.append(then)
  }

  func forget(_ name: String) { forgotten.append(name) }

  func answer(examination outcome: Examination) { examinations.removeFirst()(outcome) }
  func answer(ruleScan outcome: RuleScan.Outcome?) { ruleAnswers.removeFirst()(outcome) }
  func answer(choice: [WorkerID: AdoptionRule]?) { choices.removeFirst()(choice) }

  // MARK: outcomes

  static let nothing = RemainingProcesses(isEmpty: true, others: 0)

  func scanned(_ left: RemainingProcesses = nothing) { scans.last?(left) }
  func cleared(_ outcome: Clearing = Clearing()) { clearings.last?(outcome) }

  /// Lets each step succeed, from the scan for remaining processes on.
  func succeed(lastLines: [String]? = nil) {
    scanned()
    cleared()
    removals.last?(nil)
    readings.last?(lastLines)
  }

  /// Reports an outcome for each operation that was begun, once more or late.
  func repeatAll() {
    for then in woken + kills + removals { then(nil) }
    for then in readings { then(nil) }
    for then in scans { then(Self.nothing) }
    for then in clearings { then(Clearing()) }
  }
}
