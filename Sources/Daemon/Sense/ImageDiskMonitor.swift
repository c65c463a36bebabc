import Hibernation
import Lifecycle
import Linux
import Policy

/// Measures the disk space of images, and reports it to the engine, which decides whether an image
/// may be written.
///
/// The disk is read on another thread. A disk that doesn't answer counts as full. All queries here
/// use the last reading. It belongs to the event loop's thread.
final class ImageDiskMonitor {
  /// The functions that the monitor uses.
  struct Needs {
    /// Reads the disk, and calls back once on the event loop, later, with nil if it didn't answer
    /// in time.
    var read: (@escaping (ImageDisk?) -> Void) -> Void
    var send: (Event) -> Void
    /// Removes files that no worker's next image needs any more, on other threads.
    var removeOutdated: () -> Void = {}
    /// Writes the ledger to disk.
    var save: (WriteLedger) -> Void
    /// The time in seconds since 1970.
    var time: () -> Int64
    var log: (DaemonLog.Priority, String) -> Void
  }

  /// Called with each reading of the disk.
  var didRead: ((ImageDisk) -> Void)?
  private let directory: String
  private let needs: Needs
  private var disk = ImageDisk()
  private var ledger: WriteLedger
  private var answers = true
  /// The reasons why writes can't be tracked that were logged.
  private var loggedRefusals: Set<String> = []
  /// The number of images that were written: until now, and when the last reading of the disk
  /// began.
  private var written = 0
  private var writtenAtReading = 0

  /// The number of samples from one reading to the next. Readings follow midnight and other
  /// programs' writes.
  private static let samplesPerReading = 60
  private static let removesEvery = Duration.seconds(3600)
  /// The number of samples of the workers.
  private var samples = 0
  /// When outdated files were last removed, or the samples began.
  private var removed: Instant?

  /// A disk that takes longer than this counts as full.
  static let timeout = Duration.seconds(1)

  init(directory: String, ledger: WriteLedger, _ needs: Needs) {
    self.directory = directory
    self.ledger = ledger
    self.needs = needs
    if let damage = ledger.damage {
      needs.log(.warning, "the amount written to images today is not known: \(damage)")
    }
  }

  // MARK: queries

  /// The bytes of the base that a running worker has left on disk for its next image.
  func base(of worker: String) -> Int64 { disk.bases[worker] ?? 0 }

  /// The bytes of the image that a running worker was trimmed to, with its base; nil: nothing is in
  /// one.
  func trimImage(of worker: WorkerUnit) -> Int64? {
    guard worker.bytesInTrimImage > 0 else { return nil }
    return (disk.images[worker.id.name] ?? 0) + base(of: worker.id.name)
  }

  /// The costs of the last 24 hours.
  var costs: WriteLedger.Costs { ledger.total(at: needs.time()) }

  /// Whether an image of about this much memory has room only if the bases of running workers are
  /// removed. The size is an upper estimate: without compression, and as if all pages had changed.
  func isShort(of footprint: ByteCount, by rules: DiskRules) -> Bool {
    let (held, idle) = disk.bytes
    guard idle > 0 else { return false }
    if ByteCount(held) + footprint > rules.budget { return true }
    guard disk.total > .zero else { return false }
    let minFree = Double(disk.total.bytes) * rules.minFreePercent / 100
    return Double((disk.free - footprint).bytes) < minFree
  }

  // MARK: events

  /// Records an image that was written by a hibernation or a trim.
  ///
  /// - Parameters:
  ///   - length: the image's length in bytes; for a trim, with its base.
  ///   - bytes: the number of bytes that were written for it.
  ///   - took: the time from the engine's directive until the worker sleeps, or is trimmed.
  func didWriteImage(of worker: WorkerUnit, length: Int64, bytes: Int64, took: Duration) {
    written += 1
    disk.images[worker.id.name] = length
    worker.recordImageWritten(bytes)
    ledger.add(bytes: bytes, milliseconds: took.wholeNanoseconds / 1_000_000, at: needs.time())
    needs.save(ledger)
  }

  /// Records that an image became the next image's base, or was removed.
  func didRemoveImage(of worker: String, keepsBase: Bool) {
    disk.images[worker] = nil
    if !keepsBase { disk.bases[worker] = nil }
  }

  /// Handles a regular sample of the workers. Once a minute the disk is read, and once an hour
  /// outdated files are removed.
  func sampleIsTaken(at now: Instant) {
    samples += 1
    if samples % Self.samplesPerReading == 1 { sendReading() }
    let last = removed ?? now
    let isDue = now - last > Self.removesEvery
    removed = isDue ? now : last
    if isDue { needs.removeOutdated() }
  }

  /// Records that a reading begins, with the workers as they are now.
  func didBeginReading() { writtenAtReading = written }

  /// Reports to the engine how much space images may use, and then calls back, after `timeout` at
  /// the latest. The bases that running workers have left on disk for their next image count as
  /// free: they are removed if room is short.
  func sendReading(then done: @escaping () -> Void = {}) {
    needs.read { [weak self] reading in
      guard let self else { return }
      // The engine may have counted an image that this reading lacks.
      if reading != nil, writtenAtReading != written { return sendReading(then: done) }
      update(reading)
      let (held, idle) = disk.bytes
      needs.send(
        .disk(
          DiskReading(
            total: disk.total, free: answers ? disk.free + ByteCount(idle) : .zero,
            images: ByteCount(held - idle), writtenToday: ByteCount(costs.bytes))))
      done()
    }
  }

  private func update(_ reading: ImageDisk?) {
    if let reading {
      if !answers { needs.log(.notice, "the image disk responds again") }
      disk = reading
      didRead?(reading)
    } else {
      // The disk's size stays known, with no room on it for an image.
      (disk.total, disk.free) = (max(disk.total, ByteCount(1)), .zero)
      if answers {
        needs.log(
          .error,
          "the image disk does not respond within \(Self.timeout.text) (\(directory)): no "
            + "worker is hibernated until it does")
      }
    }
    answers = reading != nil
  }
}

// These functions record the costs of hibernations: for reports, for the disk of the images, and in
// the log.
extension ImageDiskMonitor {
  /// Records a hibernation that has succeeded.
  ///
  /// - Parameters:
  ///   - before: the worker's footprint before it.
  ///   - duration: the time from the engine's directive until the worker sleeps.
  func record(
    _ summary: HibernationSummary, of worker: WorkerUnit, from before: ByteCount,
    took duration: Duration
  ) {
    let id = worker.id
    let written = Int64(summary.written)
    didWriteImage(of: worker, length: Int64(summary.imageLength), bytes: written, took: duration)
    worker.lastHibernation = LastHibernation(
      written: written, unchanged: Int64(summary.unchanged), seconds: duration.seconds,
      footprintBefore: before)
    // The reason is the same for each worker and each time, so it is logged once.
    if let reason = summary.trackingRefusal, loggedRefusals.insert(reason).inserted {
      needs.log(
        .info,
        "\(id): its next hibernation compares pages: writes can't be tracked: \(reason)")
    }
    if let files = summary.filePages { record(files, of: id) }
  }

  private func record(_ files: FilePages.Outcome, of id: WorkerID) {
    needs.log(.info, "\(id): \(ByteCount(Int64(clamping: files.dropped))) of file pages dropped")
    if let refusal = files.refusal {
      needs.log(
        .notice,
        "\(id): file pages can't be dropped (hibernate.drop_file_pages): \(refusal); the kernel "
          + "drops them when it needs memory")
    }
  }
}
