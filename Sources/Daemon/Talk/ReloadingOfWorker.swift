import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The daemon's implementation for `WorkerReloads`.
final class ReloadingOfWorker: ReloadsHost {
  struct Parts {
    let services: Services
    let driver: EngineDriver
    let workers: WorkerRegistry
    let phase: DaemonPhase
    let returning: ReturningWorkers
    let requests: WorkerRequests
    let wrappers: RegisteredWrappers
    let restarts: RestartSupervisor
  }

  private let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  var isClosing: Bool { parts.phase.isClosing }

  func isWrapped(_ name: String) -> Bool { parts.wrappers.isWrapped(name) }

  func reloadTerms(of id: WorkerID) -> ReloadTerms? {
    guard let runtime = parts.workers[id], let state = parts.driver.state.state(of: id) else {
      return nil
    }
    let configuration = runtime.configuration
    return ReloadTerms(
      state: state, isAdopting: parts.returning.isAdopting(id), signal: configuration.reloadSignal,
      announces: configuration.readiness == .notify, limit: configuration.policy.watchdog.launch)
  }

  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    parts.services.hibernation.prioritize(id.name)
    parts.requests.request(.wake, id, then: answer)
  }

  func deliver(_ signal: Int32, to id: WorkerID) -> ReloadDelivery {
    guard let runtime = parts.workers[id], let process = runtime.process, !runtime.hasExited else {
      return .hasEnded
    }
    let pid = process.identity.pid
    // What can't be read has just ended.
    guard (try? ProcessStatus.read(pid))?.catches(signal) == true else {
      return .isNotHandled(pid: pid)
    }
    do throws(SystemCallError) {
      try process.signal(signal)
      return .sent
    } catch { return .failed("\(error)") }
  }

  func nameOfSignal(_ signal: Int32) -> String { SignalName.text(signal) }
  func send(_ event: Event) { parts.driver.send(event) }
  func lastWords(of id: WorkerID) -> String { parts.restarts.lastWords(of: id) }
  func log(_ priority: DaemonLog.Priority, _ text: String) {
    parts.services.log(priority, text)
  }
}
