import Lifecycle
import Linux
import Policy
import Supervision

@testable import Daemon

/// Looks and examinations that a test answers.
final class FakeRuleAdoptionHost: RuleAdoptionHost, StateFileWriter {
  var isClosing = false
  var obstacle: String?
  var owners: [Int32: WorkerID] = [:]
  private(set) var looks: [RuleLook] = []
  private var lookAnswers: [(RuleLook.Outcome?) -> Void] = []
  private var examinations: [([WorkerID: AdoptionRule]?) -> Void] = []
  private var adoptions: [(AdoptionRefusal?) -> Void] = []
  private(set) var adopted: [RuledProcess] = []
  private(set) var releases: [WorkerID] = []
  private(set) var examined: [[RuledWorker]] = []
  private(set) var changed: [WorkerID] = []
  private(set) var lines: [String] = []
  private(set) var files: [String: String] = [:]
  var releaseFailure: String?

  func look(_ look: RuleLook, then: @escaping (RuleLook.Outcome?) -> Void) {
    looks.append(look)
    lookAnswers.append(then)
  }
  func examineAgain(
    _ workers: [RuledWorker], by matching: RuleMatching,
    then: @escaping ([WorkerID: AdoptionRule]?) -> Void
  ) {
    examined.append(workers)
    examinations.append(then)
  }
  func owner(of pid: Int32) -> WorkerID? { owners[pid] }
  func adopt(_ ruled: RuledProcess, then: @escaping (AdoptionRefusal?) -> Void) {
    adopted.append(ruled)
    adoptions.append(then)
  }
  func release(_ id: WorkerID, then: @escaping (String?) -> Void) {
    releases.append(id)
    then(releaseFailure)
  }
  func hasChanged(_ runtime: WorkerUnit) { changed.append(runtime.id) }
  func log(_ priority: DaemonLog.Priority, _ text: String) { lines.append(text) }
  func replace(_ path: String, with text: String, then: @escaping (String?) -> Void) {
    files[path] = text
    then(nil)
  }

  func answerLook(_ outcome: RuleLook.Outcome?) { lookAnswers.removeFirst()(outcome) }
  func answerExamination(_ choices: [WorkerID: AdoptionRule]?) {
    examinations.removeFirst()(choices)
  }
  func answerAdoption(_ refusal: String? = nil) {
    adoptions.removeFirst()(refusal.map { .refused($0) })
  }
  var isLooking: Bool { !lookAnswers.isEmpty }
}
