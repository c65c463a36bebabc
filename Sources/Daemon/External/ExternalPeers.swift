import Control
import Lifecycle

// Adopted workers can wake together, such as the containers of a pod. Each names all of the others.
extension ExternalAdoption {
  func peers(
    of name: String, _ specification: AdoptionSpecification
  ) throws(AdoptionRefusal) -> [WorkerUnit] {
    var peers: [WorkerUnit] = []
    for peer in specification.wakeWith ?? [] where peer != name {
      guard let worker = workers[WorkerID(peer)], worker.external != nil else {
        throw .refused(
          "\(name) isn't adopted: it can't wake with \(peer), which isn't an adopted worker")
      }
      if !peers.contains(where: { $0 === worker }) { peers.append(worker) }
    }
    return peers
  }

  /// Makes a peer name the worker, so that each wakes the other.
  func addPeer(_ peer: WorkerUnit, with worker: WorkerID) {
    guard !peer.configuration.wakeWith.contains(worker.name) else { return }
    peer.configuration.wakeWith.append(worker.name)
    didChangePeers(peer)
  }

  /// Removes a worker that has ended from its peers. Otherwise the next worker of this name, which
  /// may have nothing to do with them, would wake with them.
  func removeFromPeers(_ worker: WorkerID) {
    for peer in workers.values.sorted(by: { $0.id.name < $1.id.name })
    where peer.external != nil && peer.id != worker {
      guard peer.configuration.wakeWith.contains(worker.name) else { continue }
      peer.configuration.wakeWith.removeAll { $0 == worker.name }
      didChangePeers(peer)
    }
  }

  private func didChangePeers(_ peer: WorkerUnit) {
    driver.send(.profileChanged(peer.id, peer.profile))
    save(peer)
  }
}
