import Control
import Lifecycle
import Linux
import Policy
import PolicyFile

// The verbs `run` and `rm`, for workers that no configuration declares.
extension ControlService {
  private var declared: DeclaredWorkers { externals.declared }
  private var requests: WorkerRequests { externals.ends.requests }

  func runWorker(_ call: ControlCall) {
    if declared.phase.isClosing { return call.answerEnding() }
    guard let name = call.request.worker, let launch = call.request.launch, !launch.command.isEmpty
    else { return call.answer(.badRequest, "`run` needs a name and a command") }
    guard NameRule.allows(name) else {
      return call.answer(
        .badRequest, "`\(name)` is not a valid worker name: use \(NameRule.text)")
    }
    let importance = launch.importance ?? 0
    guard (0...100).contains(importance) else {
      return call.answer(.badRequest, "importance \(importance) is not from 0 to 100")
    }
    if let refusal = refusal(ofRunning: name) { return call.answer(.refused, refusal) }
    var configuration = WorkerConfiguration(
      name: name, command: launch.command, directory: launch.directory, importance: importance,
      policy: requests.driver.state.policy)
    configuration.notify = launch.notify ?? false
    do throws(SettingError) {
      let environment = launch.environment
      configuration = try WorkerSettings(launch.settings ?? [], environment: environment)
        .applied(to: configuration, environment: environment)
    } catch { return call.answer(.badRequest, "\(name) can't be started: \(error)") }
    declared.add(
      WorkerUnit(
        configuration: configuration, environment: launch.environment, isDeclared: false))
    let id = WorkerID(name)
    requests.request(.start, id) { [confirmation = workers.startConfirmation] in
      confirmation.watch(id, $0) { call.answer($0) }
    }
  }

  /// Why a worker of this name can't be started, because the name is in use; nil if it can.
  private func refusal(ofRunning name: String) -> String? {
    let id = WorkerID(name)
    if declared.wrappers.leads(id) { return "\(name) is the name of a wrapped worker" }
    guard let worker = declared.workers[id] else { return nil }
    if requests.isAlive(id) { return "\(name) is already running" }
    guard worker.isDeclared else { return nil }
    return "\(name) is in the configuration; start it with `dormouse start \(name)`"
  }

  func removeWorker(_ call: ControlCall) {
    if declared.phase.isClosing { return call.answerEnding() }
    guard let name = call.request.worker else {
      return call.answer(.badRequest, "`remove` needs a worker")
    }
    let id = WorkerID(name)
    if declared.wrappers.leads(id) {
      return call.answer(.refused, "\(name) is a wrapped program: it is removed when it ends")
    }
    guard let worker = declared.workers[id] else {
      return call.answerUnknown(name)
    }
    if worker.isDeclared {
      return call.answer(
        .refused, "\(id) is in the configuration: remove it there, then use `dormouse reload`")
    }
    if worker.external != nil {
      return call.answer(
        .refused, "\(id) is adopted: `dormouse release \(id)` ends its management")
    }
    guard requests.isAlive(id) else { return finishRemoval(id, call) }
    guard call.request.verb == .removeRunning else {
      return call.answer(
        .refused, "\(name) is running: stop it first, or use `dormouse rm -f \(name)`")
    }
    externals.ends.supervision.operatorRequested(.stop, id)
    requests.request(.stop, id) { answer in
      if answer.code == .done { finishRemoval(id, call) } else { call.answer(answer) }
    }
  }

  /// Removes a worker and its log.
  private func finishRemoval(_ id: WorkerID, _ call: ControlCall) {
    // The answer to the stop waits for the disk. Meanwhile another client may have started a worker
    // of this name, or a reload may have declared it.
    if requests.isAlive(id) || declared.workers[id]?.isDeclared == true {
      return call.answer(.refused, "\(id) was stopped, and stays: it was started or declared again")
    }
    externals.ends.supervision.removeWorker(id)
    requests.driver.send(.removed(id))
    jobs.run(about: "log of \(id)", within: .seconds(20)) {
      [logs = status.facts.state.logs] in
      WorkerLogs.remove(of: id.name, from: logs)
    } then: { outcome in
      let failure: String? =
        switch outcome {
        case .done(let failure): failure?.description
        case .overdue: "the disk doesn't answer"
        case .busy: "its removal is under way"
        }
      let text = failure.map { "\(id) is removed, but its log stays: \($0)" }
      call.answer(.done, text ?? "\(id) and its log are removed")
    }
  }
}
