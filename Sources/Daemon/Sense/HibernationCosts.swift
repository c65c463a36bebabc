import Hibernation
import Lifecycle
import Linux
import Policy

/// Records the costs of hibernations: for reports, for the disk of the images, and in the log. Belongs to the
/// loop's thread.
final class HibernationCosts {
  private let imageDisk: ImageDiskMonitor
  private let log: (DaemonLog.Priority, String) -> Void
  /// Why writes can't be tracked, as logged.
  private var loggedRefusals: Set<String> = []

  init(_ imageDisk: ImageDiskMonitor, log: @escaping (DaemonLog.Priority, String) -> Void) {
    self.imageDisk = imageDisk
    self.log = log
  }

  /// A hibernation has succeeded.
  ///
  ///   - before: its footprint.
  ///   - duration: from the order to rest.
  func record(
    _ summary: HibernationSummary, of worker: WorkerUnit, from before: ByteCount,
    took duration: Duration
  ) {
    let id = worker.id
    let written = Int64(summary.written)
    imageDisk.imageWritten(
      of: id.name, length: Int64(summary.imageLength), bytes: written, took: duration)
    worker.noteImageWritten(written)
    worker.lastHibernation = LastHibernation(
      written: written, unchanged: Int64(summary.unchanged), seconds: duration.seconds,
      footprintBefore: before)
    // The same for each worker and each time.
    if let why = summary.trackingRefusal, loggedRefusals.insert(why).inserted {
      log(
        .info,
        "\(id): its next hibernation compares pages: writes can't be tracked: \(why)")
    }
    if let files = summary.filePages { record(files, of: id) }
  }

  private func record(_ files: FilePages.Outcome, of id: WorkerID) {
    log(.info, "\(id): \(ByteCount(Int64(clamping: files.dropped))) of file pages dropped")
    if let refusal = files.refusal {
      log(
        .notice,
        "\(id): file pages can't be dropped (hibernate.drop_file_pages): \(refusal); the kernel drops "
          + "them when it needs memory")
    }
  }
}
