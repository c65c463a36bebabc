import Lifecycle
import Linux
import Policy
import Supervision

/// The memfd that a worker has offered, and where the offer came from.
private struct PurgeableOffer: Sendable {
  let region: PurgeableRegion
  let file: MemoryFile?
  /// The connection over which the offer came. Its descriptor stays open while the memory is being
  /// purged: if it closes, the worker concludes that the daemon has ended. nil for an offer that
  /// was found again in a worker that sleeps and has no connection yet.
  let connection: (id: WorkerTalk.ConnectionID, descriptor: Descriptor)?
}

/// The memory of one run of a worker that Dormouse may purge without asking, whether the worker
/// sleeps or runs. It belongs to the event loop's thread.
final class PurgeableOffers {
  private let handle: WorkerHandle
  private let timers: any Timers
  private let jobs: LoopJobs
  private let recordWriter: WorkerRecordWriter
  private var offers: [PurgeableOffer] = []
  /// The bytes that the files used when they were last counted, and when the footprint was last
  /// measured.
  private var allocatedAtRecount: Int64 = 0
  private var allocatedAtMeasurement: Int64 = 0
  /// Whether a recount is scheduled.
  private var recountIsDue = false
  /// Whether a thread counts the memory on offer.
  private(set) var isCounting = false
  /// Whether the memory on offer may have changed since that count was begun.
  private var isCountOutdated = false
  private var isOver = false

  private static let countTimeout = Duration.seconds(1)

  init(
    of handle: WorkerHandle, timers: any Timers, jobs: LoopJobs, recordWriter: WorkerRecordWriter
  ) {
    self.handle = handle
    self.timers = timers
    self.jobs = jobs
    self.recordWriter = recordWriter
  }

  /// Ends the offers with the worker's run. Memory that is being purged stays open until the purge
  /// has ended.
  func end() {
    isOver = true
    offers = []
  }

  /// The inodes of the memory that the worker has offered, for the worker's record.
  var inodes: [UInt64] { offers.compactMap { $0.file?.inode } }

  /// A function that empties all offered memory and returns the number of freed bytes, for another
  /// thread; nil if nothing was offered.
  var purge: (@Sendable () -> Int64)? {
    guard !offers.isEmpty else { return nil }
    return { [offers] in offers.reduce(0) { $0 + $1.region.purge() } }
  }

  // MARK: over the worker's connections

  /// Handles an offer. The first offer of a connection has a descriptor; later offers only ask for
  /// a recount.
  ///
  /// - Parameter descriptor: the connection's descriptor.
  /// - Returns: what is wrong with the offer, for the worker; nil if nothing is.
  func add(
    _ passed: Descriptor?, from connection: WorkerTalk.ConnectionID, over descriptor: Descriptor
  ) -> String? {
    let hasOffer = offers.contains { $0.connection?.id == connection }
    guard let passed else {
      guard hasOffer else { return "`purgeable`: the first message needs a descriptor" }
      recountSoon()
      return nil
    }
    if hasOffer { return "`purgeable`: one memfd for each connection" }
    do throws(PurgeableError) {
      offers.append(
        PurgeableOffer(
          region: try PurgeableRegion(passed), file: MemoryFile(passed),
          connection: (connection, descriptor)))
    } catch { return "`purgeable`: \(error)" }
    // A later daemon finds the memory by the inode in the record.
    if let worker = handle.worker, let state = handle.state {
      recordWriter.save(worker, state: state)
    }
    recount()
    return nil
  }

  func didDisconnect(_ connection: WorkerTalk.ConnectionID) {
    remove { $0.connection?.id == connection }
  }

  private func remove(where isGone: (PurgeableOffer) -> Bool) {
    let before = offers.count
    offers.removeAll(where: isGone)
    if offers.count != before { recount() }
  }

  // MARK: sizes

  /// Recounts within 100 ms, at most once, so that a worker can't make the daemon read a large
  /// table again and again.
  private func recountSoon() {
    guard !recountIsDue else { return }
    recountIsDue = true
    timers.after(.milliseconds(100)) { [weak self] in
      self?.recountIsDue = false
      self?.recount()
    }
  }

  /// Counts the memory on offer now. A running worker changes it without a message. Another thread
  /// reads the tables of the slots: a page of them may be in swap.
  func recount() {
    guard !isOver else { return }
    isCountOutdated = isCounting
    if offers.isEmpty { return report(.zero) }
    guard !isCounting else { return }
    isCounting = true
    let regions = offers.map(\.region)
    jobs.run(about: "purgeable memory of \(handle.id)", within: Self.countTimeout) {
      ByteCount(regions.reduce(0) { $0 + $1.volatileBytes() })
    } then: { [weak self] in
      self?.didCount($0)
    }
  }

  private func didCount(_ outcome: JobOutcome<ByteCount>) {
    isCounting = false
    if isOver { return }
    if isCountOutdated { return recount() }
    switch outcome {
    case .done(let bytes): report(bytes)
    // The next sample counts again.
    case .overdue, .busy: allocatedAtRecount = -1
    }
  }

  private func report(_ bytes: ByteCount) {
    if handle.driver.state.snapshot(of: handle.id)?.purgeable != bytes {
      handle.send(.purgeableOffered(handle.id, bytes))
    }
  }

  /// Checks the offers of a running worker, once a second. The table is read again if its file has
  /// grown or shrunk. While memory is short it is read each time: memory that the worker has
  /// released without a change of size counts then.
  ///
  /// - Returns: whether the file's size has changed by 128 KiB or more, so that the footprint has
  ///   to be measured again.
  func sample() -> Bool {
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

  /// Restores the offers of a worker that an earlier daemon has suspended: its memory is still on
  /// offer.
  func restore(_ inodes: [UInt64], in tree: ProcessTree) {
    for inode in inodes {
      let file = MemoryFile(inode: inode)
      // Memory that can't be read any more isn't on offer.
      guard let descriptor = file.open(in: tree), let region = try? PurgeableRegion(descriptor)
      else { continue }
      offers.append(PurgeableOffer(region: region, file: file, connection: nil))
    }
  }

  /// Removes the offers that `restore` has added. The worker will run, and repeats its offers
  /// itself.
  func dropRestored() { remove { $0.connection == nil } }
}
