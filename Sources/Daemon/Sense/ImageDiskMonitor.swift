import Lifecycle
import Policy

/// Measures the disk space that images take, and reports it to the engine, which decides whether an image may
/// be written.
///
/// The disk is looked at on another thread: a disk that doesn't answer counts as full, and everything here uses
/// the last look. Belongs to the loop's thread.
final class ImageDiskMonitor {
  /// The functions that it uses.
  struct Needs {
    /// Looks at the disk, and calls back once on the loop, later; nil: it didn't answer in time.
    var look: (@escaping (ImageDisk?) -> Void) -> Void
    var send: (Event) -> Void
    /// Removes files that no worker's next image needs any more, on other threads.
    var removeOutdated: () -> Void = {}
    /// Keeps the ledger on disk.
    var save: (WriteLedger) -> Void
    /// Seconds since 1970.
    var time: () -> Int64
    var log: (DaemonLog.Priority, String) -> Void
  }

  private let directory: String
  private let needs: Needs
  private var disk = ImageDisk()
  private var ledger: WriteLedger
  private var answers = true
  /// Images that were written, now and when the last look at the disk began.
  private var written = 0
  private var writtenAtLook = 0

  /// From one look to the next: for midnight, and for other programs that write to the disk.
  private static let samplesPerReading = 60
  private static let removesEvery = Duration.seconds(3600)
  /// Of the workers.
  private var samples = 0
  /// When outdated files were last removed, or the samples began.
  private var removed: Instant?

  /// A disk that takes longer counts as full.
  static let patience = Duration.seconds(1)

  init(directory: String, ledger: WriteLedger, _ needs: Needs) {
    self.directory = directory
    self.ledger = ledger
    self.needs = needs
    if let damage = ledger.damage {
      needs.log(.warning, "the amount written to images today is not known: \(damage)")
    }
  }

  // MARK: what others ask

  /// Bytes of the base that a running worker has left on disk for its next image.
  func base(of worker: String) -> Int64 { disk.base(of: worker) }

  /// In the last 24 hours.
  var costs: WriteLedger.Costs { ledger.total(at: needs.time()) }

  /// Whether an image of about this much memory has room only if the bases of running workers are removed. The
  /// size is an upper estimate: without compression, and as if all pages had changed.
  func isShort(of footprint: ByteCount, by rules: DiskRules) -> Bool {
    let (held, idle) = disk.bytes
    guard idle > 0 else { return false }
    if ByteCount(held) + footprint > rules.budget { return true }
    guard disk.total > .zero else { return false }
    let least = Double(disk.total.bytes) * rules.minFreePercent / 100
    return Double((disk.free - footprint).bytes) < least
  }

  // MARK: what happens

  /// - Parameters:
  ///   - length: of the image, bytes.
  ///   - bytes: that were written for it.
  ///   - took: from the order to rest.
  func imageWritten(of worker: String, length: Int64, bytes: Int64, took: Duration) {
    written += 1
    disk.images[worker] = length
    ledger.add(
      bytes: bytes, milliseconds: took.wholeNanoseconds / 1_000_000, at: needs.time())
    needs.save(ledger)
  }

  /// It became the next image's base, or was removed.
  func imageGone(of worker: String, keepsBase: Bool) {
    disk.images[worker] = nil
    if !keepsBase { disk.bases[worker] = nil }
  }

  /// At each regular sample of the workers. Once a minute the disk is looked at, and once an hour what is outdated is
  /// removed.
  func sampleIsTaken(at now: Instant) {
    samples += 1
    if samples % Self.samplesPerReading == 1 { sendReading() }
    let last = removed ?? now
    let isDue = now - last > Self.removesEvery
    removed = isDue ? now : last
    if isDue { needs.removeOutdated() }
  }

  /// A look begins, with the workers as they are now.
  func lookBegins() { writtenAtLook = written }

  /// Reports to the engine what images may take, and then calls back: after `patience` at the latest. The bases
  /// that running workers have left on disk for their next image count as free: they are removed if room is
  /// short.
  func sendReading(then done: @escaping () -> Void = {}) {
    needs.look { [weak self] found in
      guard let self else { return }
      // The engine may have counted an image that this look lacks.
      if found != nil, writtenAtLook != written { return sendReading(then: done) }
      update(found)
      let (held, idle) = disk.bytes
      needs.send(
        .disk(
          DiskReading(
            total: disk.total, free: answers ? disk.free + ByteCount(idle) : .zero,
            images: ByteCount(held - idle), writtenToday: ByteCount(costs.bytes))))
      done()
    }
  }

  private func update(_ found: ImageDisk?) {
    if let found {
      if !answers { needs.log(.notice, "the image disk responds again") }
      disk = found
    } else {
      // The disk's size stays known: an image then has no room on it.
      (disk.total, disk.free) = (max(disk.total, ByteCount(1)), .zero)
      if answers {
        needs.log(
          .error,
          "the image disk does not respond within \(Self.patience.spoken) (\(directory)): no worker is "
            + "hibernated until it does")
      }
    }
    answers = found != nil
  }
}
