import Lifecycle
import Policy

@testable import Daemon

/// Workers that get each signal that asks them to reload, and never answer.
final class QuietReloads: ReloadsHost {
  let isClosing = false
  func isWrapped(_ name: String) -> Bool { false }
  func reloadTerms(of id: WorkerID) -> ReloadTerms? {
    ReloadTerms(state: .background, signal: 1, announces: true, limit: .seconds(30))
  }
  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {}
  func deliver(_ signal: Int32, to id: WorkerID) -> ReloadDelivery { .sent }
  func nameOfSignal(_ signal: Int32) -> String { "SIGHUP" }
  func send(_ event: Event) {}
  func lastWords(of id: WorkerID) -> String { "" }
  func log(_ priority: DaemonLog.Priority, _ text: String) {}
}
