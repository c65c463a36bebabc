import Control
import Lifecycle
import Policy
import PolicyFile

/// `run` and `rm`: workers that no configuration declares.
struct UndeclaredWorkers {
  /// The machine's.
  let policy: LifecyclePolicy
  let host: any ControlHost

  func run(_ call: ControlCall) {
    guard let name = call.request.worker, let launch = call.request.launch, !launch.command.isEmpty
    else { return call.answer(.badRequest, "`run` needs a name and a command") }
    if let problem = WorkerName.problem(with: name) {
      return call.answer(.badRequest, "`\(name)` is not a valid worker name: \(problem)")
    }
    let importance = launch.importance ?? 0
    guard (0...100).contains(importance) else {
      return call.answer(.badRequest, "importance \(importance) is not from 0 to 100")
    }
    if let refusal = refusal(ofRunning: name) { return call.answer(.refused, refusal) }
    var configuration = WorkerConfiguration(
      name: name, command: launch.command, directory: launch.directory, importance: importance,
      policy: policy)
    configuration.notify = launch.notify ?? false
    do throws(SettingError) {
      let environment = launch.environment
      configuration = try WorkerSettings(launch.settings ?? [], environment: environment)
        .applied(to: configuration, environment: environment)
    } catch { return call.answer(.badRequest, "\(name) can't be started: \(error)") }
    host.launch(configuration, environment: launch.environment) { call.answer($0) }
  }

  /// The name is in use.
  private func refusal(ofRunning name: String) -> String? {
    let id = WorkerID(name)
    if host.leads(id) { return "\(name) is the name of a wrapped worker" }
    guard let known = host.facts(of: id) else { return nil }
    if host.isAlive(id) { return "\(name) is already running" }
    guard known.isDeclared else { return nil }
    return "\(name) is in the configuration; start it with `dormouse start \(name)`"
  }

  func remove(_ call: ControlCall) {
    guard let name = call.request.worker else {
      return call.answer(.badRequest, "`remove` needs a worker")
    }
    let id = WorkerID(name)
    if host.leads(id) {
      return call.answer(.refused, "\(name) is a wrapped program: it is removed when it ends")
    }
    guard let known = host.facts(of: id) else {
      return call.answer(.unknownWorker, "there is no worker named \(name)")
    }
    if let refusal = refusal(ofRemoving: id, known) { return call.answer(.refused, refusal) }
    guard host.isAlive(id) else { return finishRemoval(id, call) }
    guard call.request.verb == .removeRunning else {
      return call.answer(
        .refused, "\(name) is running: stop it first, or use `dormouse rm -f \(name)`")
    }
    host.personAsks(.stop, id)
    host.request(.stop, id, asked: nil, lasting: nil) { answer in
      if answer.code == .done { finishRemoval(id, call) } else { call.answer(answer) }
    }
  }

  private func finishRemoval(_ id: WorkerID, _ call: ControlCall) {
    host.remove(id) { failure in
      let text = failure.map { "\(id) is removed, but its log stays: \($0)" }
      call.answer(.done, text ?? "\(id) and its log are removed")
    }
  }

  private func refusal(ofRemoving id: WorkerID, _ known: WorkerFacts) -> String? {
    if known.isDeclared {
      return "\(id) is in the configuration: remove it there, then use `dormouse reload`"
    }
    if known.isAdopted {
      return "\(id) is adopted: `dormouse release \(id)` ends its management"
    }
    return nil
  }
}
