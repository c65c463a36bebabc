import Hibernation
import Lifecycle
import Linux
import Policy

// These functions record the costs of hibernations and trims: for reports, for the disk of the
// images, and in the log.
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
    didWriteImage(of: id.name, length: Int64(summary.imageLength), bytes: written, took: duration)
    worker.recordImageWritten(written)
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

  /// Records the image of a trim.
  ///
  /// - Parameters:
  ///   - length: the length of the image and its base, in bytes.
  ///   - written: the number of bytes of them that were written now.
  func record(
    trimImage length: Int64, written: Int64, of worker: WorkerUnit, took duration: Duration
  ) {
    didWriteImage(of: worker.id.name, length: length, bytes: written, took: duration)
    worker.recordImageWritten(written)
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
