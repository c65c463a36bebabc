import Lifecycle
import Linux
import Policy

/// The daemon's implementation for `RuleAdoption`.
final class RulesOfDaemon: RuleAdoptionHost {
  struct Parts {
    let services: Services
    let driver: EngineDriver
    let workers: WorkerRegistry
    let phase: DaemonPhase
    let externals: ExternalAdoption
    let recordWriter: WorkerRecordWriter
  }

  private let parts: Parts
  /// A look at 10,000 processes takes less than a second.
  private static let patience = Duration.seconds(20)

  init(_ parts: Parts) { self.parts = parts }

  var isClosing: Bool { parts.phase.isClosing }

  var obstacle: String? {
    Yama.current.forbidsStrangers
      ? "Yama (kernel.yama.ptrace_scope) keeps this daemon from watching the inputs of processes that it "
        + "hasn't started, so they can't be put to sleep; use `dormouse wrap` or root's daemon"
      : nil
  }

  func look(_ look: RuleLook, then: @escaping (RuleLook.Outcome?) -> Void) {
    // A look that doesn't end keeps its subject.
    let left = look.passedOver.map { "\($0.pid)" }.sorted().joined(separator: ", ")
    let subject = "processes of rules" + (left.isEmpty ? "" : " without \(left)")
    let wait = LookWait(for: look.progress, parts.services.loop, then: then)
    run(subject, { look.perform() }) { wait.end($0 ?? nil) }
  }

  func examineAgain(
    _ workers: [RuledWorker], by matching: RuleMatching,
    then: @escaping ([WorkerID: AdoptionRule]?) -> Void
  ) {
    let now = EventLoop.now
    run("workers of rules") {
      var choices: [WorkerID: AdoptionRule] = [:]
      let matching = RuleLook.resolved(matching)
      for worker in workers {
        // One that has ended is removed soon.
        guard let stat = try? ProcessStat.read(worker.process.pid) else { continue }
        let process = ProcessObservation(stat, now: now, command: worker.command)
        if let choice = matching.choose(process, isAdopted: true) {
          choices[worker.id] = matching.rules[choice.rule]
        }
      }
      return choices
    } then: {
      then($0)
    }
  }

  private func run<Value: Sendable>(
    _ subject: String, _ job: @escaping @Sendable () -> Value, then: @escaping (Value?) -> Void
  ) {
    parts.services.jobs.run(about: subject, within: Self.patience, job) { outcome in
      guard case .done(let value) = outcome else { return then(nil) }
      then(value)
    }
  }

  func owner(of pid: Int32) -> WorkerID? { parts.workers.owner(of: pid) }

  func adopt(_ ruled: RuledProcess, then: @escaping (AdoptionRefusal?) -> Void) {
    parts.externals.adopt(ruled, then: then)
  }

  func release(_ id: WorkerID, then: @escaping (String?) -> Void) {
    parts.externals.release(id, then: then)
  }

  func hasChanged(_ runtime: WorkerUnit) {
    parts.driver.send(.profileChanged(runtime.id, runtime.profile))
    if let state = parts.driver.state.state(of: runtime.id) {
      parts.recordWriter.save(runtime, state: state)
    }
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { parts.services.log(priority, text) }
}
