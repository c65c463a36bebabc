import Lifecycle
import Linux
import Policy
import Supervision

/// A worker's memfd, and its origin.
private struct PurgeableOffer: Sendable {
  let region: PurgeableRegion
  let file: MemoryFile?
  /// Over which it came, held open as long as the memory is being purged: to the worker its end is the
  /// daemon's. nil: found again at a worker that sleeps and has no connection yet.
  let connection: (id: WorkerTalk.ConnectionID, descriptor: Descriptor)?
}

/// The memory that may be taken from one run of a worker without asking, asleep or awake. Belongs to the
/// loop's thread.
final class PurgeableOffers {
  private let handle: WorkerHandle
  private let timers: any Timers
  private let recordWriter: WorkerRecordWriter
  private var offers: [PurgeableOffer] = []
  /// Bytes that the files took when they were last counted, and when the footprint was last measured.
  private var allocatedAtRecount: Int64 = 0
  private var allocatedAtMeasurement: Int64 = 0
  /// They will be counted again in a moment.
  private var recountIsDue = false
  private var isOver = false

  init(of handle: WorkerHandle, timers: any Timers, recordWriter: WorkerRecordWriter) {
    self.handle = handle
    self.timers = timers
    self.recordWriter = recordWriter
  }

  /// The run is over. Memory that is being purged is held until that has ended.
  func end() {
    isOver = true
    offers = []
  }

  /// What its connections have offered, for the worker's record.
  var inodes: [UInt64] { offers.compactMap { $0.file?.inode } }

  /// Empties all of them on another thread, and returns the bytes that were freed; nil: nothing was offered.
  var purge: (@Sendable () -> Int64)? {
    guard !offers.isEmpty else { return nil }
    return { [offers] in offers.reduce(0) { $0 + $1.region.purge() } }
  }

  // MARK: over the worker's connections

  /// The first offer of a connection comes with a descriptor, later ones only say: look again.
  ///
  /// - Parameter own: the connection's.
  /// - Returns: what is wrong with it, for the worker.
  func add(
    _ passed: Descriptor?, from connection: WorkerTalk.ConnectionID, over own: Descriptor
  ) -> String? {
    let isKnown = offers.contains { $0.connection?.id == connection }
    guard let passed else {
      guard isKnown else { return "`purgeable`: the first message needs a descriptor" }
      recountSoon()
      return nil
    }
    if isKnown { return "`purgeable`: one memfd for each connection" }
    do throws(PurgeableError) {
      offers.append(
        PurgeableOffer(
          region: try PurgeableRegion(passed), file: MemoryFile(passed),
          connection: (connection, own)))
    } catch { return "`purgeable`: \(error)" }
    // A later daemon finds it by its identity.
    if let worker = handle.worker, let state = handle.state {
      recordWriter.save(worker, state: state)
    }
    recount()
    return nil
  }

  func connectionHasEnded(_ connection: WorkerTalk.ConnectionID) {
    remove { $0.connection?.id == connection }
  }

  private func remove(where isGone: (PurgeableOffer) -> Bool) {
    let before = offers.count
    offers.removeAll(where: isGone)
    if offers.count != before { recount() }
  }

  // MARK: their sizes

  /// A worker can't make the daemon read a large table again and again.
  private func recountSoon() {
    guard !recountIsDue else { return }
    recountIsDue = true
    timers.after(.milliseconds(100)) { [weak self] in
      self?.recountIsDue = false
      self?.recount()
    }
  }

  /// The memory on offer now. A running worker changes it without a message.
  func recount() {
    guard !isOver else { return }
    let bytes = ByteCount(offers.reduce(0) { $0 + $1.region.volatileBytes() })
    if handle.driver.state.snapshot(of: handle.id)?.purgeable != bytes {
      handle.send(.purgeableOffered(handle.id, bytes))
    }
  }

  /// Of a worker that runs, once a second: its table is read again where its file has grown or shrunk,
  /// and each time while memory is short, when what it has let go of without a change of size counts.
  ///
  /// - Returns: whether the file has moved so much that the footprint is another.
  func look() -> Bool {
    guard !offers.isEmpty else { return false }
    let allocated = offers.reduce(Int64(0)) { $0 + $1.region.allocatedBytes }
    if allocated != allocatedAtRecount || handle.driver.state.pressure != .normal {
      allocatedAtRecount = allocated
      recount()
    }
    let moved = (allocated - allocatedAtMeasurement).magnitude >= 128 * 1024
    if moved { allocatedAtMeasurement = allocated }
    return moved
  }

  // MARK: across daemons

  /// For a worker that sleeps on: its memory is on offer as it was.
  func findAgain(_ inodes: [UInt64], in tree: ProcessTree) {
    for inode in inodes {
      let file = MemoryFile(inode: inode)
      // Memory that can't be read any more isn't on offer.
      guard let descriptor = file.open(in: tree), let region = try? PurgeableRegion(descriptor)
      else { continue }
      offers.append(PurgeableOffer(region: region, file: file, connection: nil))
    }
  }

  /// It will run, and offer them itself.
  func dropFound() { remove { $0.connection == nil } }
}
