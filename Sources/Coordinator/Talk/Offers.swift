import Lifecycle
import Linux
import Policy
import Supervision
import WorkerProtocol

extension Daemon {
  func offered(
    _ passed: Descriptor?, _ connection: WorkerTalk.ConnectionID, _ talk: WorkerTalk,
    _ runtime: WorkerRuntime
  ) {
  }
  func leftWithOffer(_ connection: WorkerTalk.ConnectionID, _ runtime: WorkerRuntime) {}
  func forgetOffers(_ runtime: WorkerRuntime) {}
}
