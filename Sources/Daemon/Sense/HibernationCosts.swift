import Hibernation
import Lifecycle
import Linux
import Policy

/// Records the costs of hibernations and trims: for reports, for the disk of the images, and in the
/// log. It belongs to the event loop's thread.
final class HibernationCosts {
  private let imageDisk: ImageDiskMonitor
  private let log: (DaemonLog.Priority, String) -> Void
  /// The reasons why writes can't be tracked that were logged.
  private var loggedRefusals: Set<String> = []

  init(_ imageDisk: ImageDiskMonitor, log: @escaping (DaemonLog.Priority, String) -> Void) {
    self.imageDisk = imageDisk
    self.log = log
  }

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
    imageDisk.didWriteImage(
      of: id.name, length: Int64(summary.imageLength), bytes: written, took: duration)
    worker.recordImageWritten(written)
    worker.lastHibernation = LastHibernation(
      written: written, unchanged: Int64(summary.unchanged), seconds: duration.seconds,
      footprintBefore: before)
    // The reason is the same for each worker and each time, so it is logged once.
    if let reason = summary.trackingRefusal, loggedRefusals.insert(reason).inserted {
      log(
        .info,
        "\(id): its next hibernation compares pages: writes can't be tracked: \(reason)")
    }
    if let files = summary.filePages { record(files, of: id) }
  }

  /// Records the image of a trim.
  ///
  /// - Parameters:
  ///   - length: the length of the image and its base, in bytes.
  ///   - written: the number of bytes of them that were written now.
  func record(
    trimImage length: Int64, written: Int64, of worker: WorkerUnit, took duration: Duration
  ) {
    imageDisk.didWriteImage(of: worker.id.name, length: length, bytes: written, took: duration)
    worker.recordImageWritten(written)
  }

  private func record(_ files: FilePages.Outcome, of id: WorkerID) {
    log(.info, "\(id): \(ByteCount(Int64(clamping: files.dropped))) of file pages dropped")
    if let refusal = files.refusal {
      log(
        .notice,
        "\(id): file pages can't be dropped (hibernate.drop_file_pages): \(refusal); the kernel "
          + "drops them when it needs memory")
    }
  }
}
