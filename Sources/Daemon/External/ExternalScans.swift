import Control
import Lifecycle
import Linux
import Policy
import PolicyFile

// These functions examine processes of other supervisors, on threads that may wait for a process or
// a file system.
extension KernelWorkerProcesses {
  /// The time limit of a scan. A scan of 10,000 processes takes less than a second.
  private static let scanTimeout = Duration.seconds(20)

  func examine(
    _ wanted: AdoptionSpecification, as name: String, in library: PolicyLibrary,
    within limit: Duration,
    then: @escaping (JobOutcome<Result<ExternalProcess, AdoptionRefusal>>) -> Void
  ) {
    services.jobs.run(about: "adoption of \(name)", within: limit) {
      Result { () throws(AdoptionRefusal) in
        let named: LifecyclePolicy?
        do throws(SettingError) {
          named = try wanted.chosenPolicy.load(from: library)
        } catch { throw .malformed("\(name) isn't adopted: \(error)") }
        var candidate = try ExternalProcess.examine(wanted)
        candidate.policy = named
        return candidate
      }
    } then: {
      then($0)
    }
  }

  func scan(_ scan: RuleScan, then: @escaping (RuleScan.Outcome?) -> Void) {
    // A scan that doesn't end keeps its subject busy, so the processes that are left out are part
    // of the subject.
    let left = scan.passedOver.map { "\($0.pid)" }.sorted().joined(separator: ", ")
    let subject = "processes of rules" + (left.isEmpty ? "" : " without \(left)")
    let wait = ScanWait(for: scan.progress, services.loop, then: then)
    services.jobs.run(about: subject, within: Self.scanTimeout) {
      scan.perform()
    } then: {
      wait.end($0.value ?? nil)
    }
  }

  func chooseRules(
    for workers: [RuledWorker], by matching: RuleMatching,
    then: @escaping ([WorkerID: AdoptionRule]?) -> Void
  ) {
    let now = EventLoop.now
    services.jobs.run(about: "workers of rules", within: Self.scanTimeout) {
      var choices: [WorkerID: AdoptionRule] = [:]
      let matching = matching.resolved()
      for worker in workers {
        // A worker that has ended is removed soon.
        guard let stat = try? ProcessStat.read(worker.process.pid) else { continue }
        let process = ProcessObservation(stat, now: now, command: worker.command)
        if case .matched(let rule, _) = matching.choose(process, isAdopted: true) {
          choices[worker.id] = matching.rules[rule]
        }
      }
      return choices
    } then: {
      then($0.value)
    }
  }
}
