import Lifecycle
import Policy
import PolicyFile

extension Daemon {
  /// What `reload` would change now, or why it would change nothing; changes nothing.
  func previewReload(allowEmpty: Bool = false, then report: @escaping (ReloadOutcome) -> Void) {
    configurationLook.take { [unowned self] result in
      report(result.map { preview($0, allowEmpty) } ?? Self.configurationIsSilent)
    }
  }

  private func preview(
    _ result: ParseResult<DaemonConfiguration>, _ allowEmpty: Bool
  ) -> ReloadOutcome {
    guard let new = result.value else {
      return (false, "the configuration has errors, nothing would be changed:\n\(result.rendered)")
    }
    if !allowEmpty, let refusal = refusalOfEmpty(new) { return (false, refusal) }
    var changes: [String] = []
    if let change = PolicyFile.summary(from: engine.policy, to: new.policy) {
      changes.append(change)
    }
    let declared = Set(new.workers.map { WorkerID($0.name) })
    for id in workers.keys.sorted() where workers[id]?.isDeclared == true {
      guard !declared.contains(id) else { continue }
      let stopped = engine.state(of: id)?.isAlive == true ? "stopped and removed" : "removed"
      changes.append("\(id) would be \(stopped)")
    }
    for worker in new.workers {
      guard let runtime = workers[WorkerID(worker.name)] else {
        changes.append("\(worker.name) would be added\(worker.autostart ? " and started" : "")")
        continue
      }
      guard runtime.configuration != worker || !runtime.isDeclared else { continue }
      if let text = changeText(of: worker, from: runtime, (engine.policy, new.policy)) {
        changes.append(text)
      }
    }
    return (true, changes.isEmpty ? "nothing would change" : changes.joined(separator: "; "))
  }
}
