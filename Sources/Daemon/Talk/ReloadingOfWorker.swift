import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// What `WorkerReloads` gets of the daemon.
final class ReloadingOfWorker: ReloadsHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  var isClosing: Bool { daemon.isEnding || daemon.isLeaving }

  func isWrapped(_ name: String) -> Bool { daemon.wrappers.isWrapped(name) }

  func reloadTerms(of id: WorkerID) -> ReloadTerms? {
    guard let runtime = daemon.workers[id], let state = daemon.engine.state(of: id) else {
      return nil
    }
    let configuration = runtime.configuration
    return ReloadTerms(
      state: state, isAdopting: daemon.survivors.isAdopting(id), signal: configuration.reloadSignal,
      announces: configuration.readiness == .notify, limit: configuration.policy.watchdog.launch)
  }

  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    daemon.hibernation.prioritize(id.name)
    daemon.request(.wake, id, then: answer)
  }

  func deliver(_ signal: Int32, to id: WorkerID) -> ReloadDelivery {
    guard let runtime = daemon.workers[id], let process = runtime.process, !runtime.hasExited else {
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
  func send(_ event: Event) { daemon.driver.send(event) }
  func lastWords(of id: WorkerID) -> String { daemon.restarts.lastWords(of: id) }
  func log(_ priority: DaemonLog.Priority, _ text: String) { daemon.log(priority, text) }
}
