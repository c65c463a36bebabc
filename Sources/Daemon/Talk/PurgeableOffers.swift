import Lifecycle
import Linux
import Policy
import Supervision
import WorkerProtocol

// Purgeable memory: what workers offer, and taking it, asleep or awake.

/// A worker's memfd, and how we came to it.
struct PurgeableOffer: Sendable {
  let region: PurgeableRegion
  let file: MemoryFile?
  /// Over which it came, held open for as long as somebody purges: to the worker its end is the
  /// daemon's. nil: found again at a worker that sleeps and has no connection yet.
  let connection: (id: WorkerTalk.ConnectionID, descriptor: Descriptor)?
}

extension Daemon {
  /// The first comes with a descriptor, later ones only say: look again.
  func offered(
    _ passed: Descriptor?, _ connection: WorkerTalk.ConnectionID, _ talk: WorkerTalk,
    _ runtime: WorkerRuntime
  ) {
    let isKnown = runtime.offers.contains { $0.connection?.id == connection }
    guard let passed else {
      if isKnown { return recountSoon(runtime) }
      _ = talk.socket.refuse("`purgeable`: the first comes with a descriptor", to: connection)
      return
    }
    guard !isKnown else {
      _ = talk.socket.refuse("`purgeable`: one memfd for each connection", to: connection)
      return
    }
    guard let own = talk.socket.descriptor(of: connection) else { return }
    do throws(PurgeableError) {
      runtime.offers.append(
        PurgeableOffer(
          region: try PurgeableRegion(passed), file: MemoryFile(passed),
          connection: (connection, own)))
    } catch {
      _ = talk.socket.refuse("`purgeable`: \(error)", to: connection)
      return
    }
    if let state = engine.state(of: runtime.id) { saveRecord(runtime, state: state) }
    recount(runtime)
  }

  func leftWithOffer(_ connection: WorkerTalk.ConnectionID, _ runtime: WorkerRuntime) {
    let before = runtime.offers.count
    runtime.offers.removeAll { $0.connection?.id == connection }
    if runtime.offers.count != before { recount(runtime) }
  }

  /// Nobody can make us read a large table over and over.
  private func recountSoon(_ runtime: WorkerRuntime) {
    guard !runtime.recountIsDue else { return }
    runtime.recountIsDue = true
    loop.after(.milliseconds(100)) { [unowned self] in
      runtime.recountIsDue = false
      recount(runtime)
    }
  }

  /// What is on offer now. A worker that runs changes it without a word.
  func recount(_ runtime: WorkerRuntime) {
    let bytes = ByteCount(runtime.offers.reduce(0) { $0 + $1.region.volatileBytes() })
    guard engine.snapshot(of: runtime.id)?.purgeable != bytes else { return }
    driver.send(.purgeableOffered(runtime.id, bytes))
  }

  /// Of a worker that runs, once a second: its table is read again where its file has grown or shrunk,
  /// and each time while memory is short, when what it has let go of without a change of size counts.
  ///
  /// - Returns: whether the file has moved so much that the footprint is another.
  func lookAtOffers(_ runtime: WorkerRuntime) -> Bool {
    guard !runtime.offers.isEmpty else { return false }
    let allocated = runtime.offers.reduce(Int64(0)) { $0 + $1.region.allocatedBytes }
    if allocated != runtime.allocatedAtRecount || engine.pressure != .normal {
      runtime.allocatedAtRecount = allocated
      recount(runtime)
    }
    let moved = (allocated - runtime.allocatedAtMeasurement).magnitude >= 128 * 1024
    if moved { runtime.allocatedAtMeasurement = allocated }
    return moved
  }

  func purge(_ id: WorkerID) {
    guard let runtime = workers[id], !runtime.offers.isEmpty else {
      return driver.send(.purgeFailed(id, "it has offered no memory that could be taken"))
    }
    let offers = runtime.offers
    // A worker whose daemon has gone takes slots that are being purged for its own as soon as it runs:
    // what wakes it waits for this (`afterWhatIsUnderWay`).
    mechanics.submit(about: id.name) { [mailbox] in
      let freed = Self.purge(offers)
      mailbox.post { $0.purged(id, freed) }
    }
  }

  private static func purge(_ offers: [PurgeableOffer]) -> Int64 {
    offers.reduce(0) { $0 + $1.region.purge() }
  }

  private func purged(_ id: WorkerID, _ freed: Int64) {
    guard freed > 0 else {
      return driver.send(.purgeFailed(id, "nothing of what it has offered could be taken"))
    }
    log(.info, "\(id): \(ByteCount(freed)) of purgeable memory taken")
    driver.send(.purged(id, freed: ByteCount(freed)))
  }

  // MARK: over a daemon's end

  /// Of a worker that sleeps on: its memory is on offer as it was.
  func findOffersAgain(_ record: WorkerRecord, _ runtime: WorkerRuntime) {
    guard !record.purgeable.isEmpty, let tree = try? runtime.process?.tree() else { return }
    for inode in record.purgeable {
      let file = MemoryFile(inode: inode)
      guard let descriptor = file.open(in: tree), let region = try? PurgeableRegion(descriptor)
      else { continue }
      runtime.offers.append(PurgeableOffer(region: region, file: file, connection: nil))
    }
  }

  /// It will run, and offer them itself.
  func dropFoundOffers(_ runtime: WorkerRuntime) {
    let before = runtime.offers.count
    runtime.offers.removeAll { $0.connection == nil }
    if runtime.offers.count != before { recount(runtime) }
  }
}
