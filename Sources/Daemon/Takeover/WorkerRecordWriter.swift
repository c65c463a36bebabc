import Hibernation
import Lifecycle
import Policy
import Supervision

/// Records what a later daemon needs to find a worker again. It belongs to the event loop's thread.
final class WorkerRecordWriter {
  let records: any WorkerRecords
  let bootID: String
  let log: DaemonLog
  /// The directory in which this daemon makes images; nil if it isn't known. A volume may be
  /// mounted on it while the daemon runs, so each reading of the disk updates it (`follow`).
  var images: ImageDirectory?

  init(
    records: any WorkerRecords, bootID: String, log: DaemonLog, images: ImageDirectory? = nil
  ) {
    self.records = records
    self.bootID = bootID
    self.log = log
    self.images = images
  }

  /// Uses the directory that each reading of the disk finds, and writes the records again that name
  /// another one. Otherwise the record of a worker that is trimmed on a volume that was mounted
  /// after its last change of state would name the directory below. If that volume isn't mounted
  /// when the next daemon starts, that daemon would take the image for removed, and end the worker.
  func follow(_ disk: ImageDiskMonitor, of workers: WorkerRegistry, _ driver: EngineDriver) {
    disk.didRead = { [self] in
      guard let directory = $0.directory else { return }
      images = directory
      correctDirectories(of: workers, driver)
    }
  }

  private func correctDirectories(of workers: WorkerRegistry, _ driver: EngineDriver) {
    let recorded = Dictionary(
      records.all.map { ($0.name, $0.imageDirectory) }, uniquingKeysWith: { first, _ in first })
    for worker in workers.values {
      // A worker that is being adopted keeps its record: the engine counts it as terminated. So
      // does one that is being killed, which the engine counts as suspended.
      guard let earlier = recorded[worker.id.name], earlier != directory(of: worker)?.text,
        worker.sleep?.isMemoryUnverified != true, let state = driver.state.state(of: worker.id)
      else { continue }
      save(worker, state: state)
    }
  }

  /// - Parameter imageDirectory: the directory in which an earlier daemon made images; nil: its
  ///   record doesn't say it, or this daemon manages the worker.
  func save(_ worker: WorkerUnit, state: WorkerState, imageDirectory: String? = nil) {
    guard var record = record(of: worker, state: state) else { return }
    if let imageDirectory { record.imageDirectory = imageDirectory }
    save(record)
  }

  /// Records a worker whose process exists and whose program doesn't run yet.
  ///
  /// - Parameter done: called on another thread, when the record is on disk or can't be written.
  func save(
    _ worker: WorkerUnit, launching forked: ForkedWorker, then done: @escaping @Sendable () -> Void
  ) {
    let state = WorkerState.launching
    save(completed(forked.record(bootID: bootID, state: state.rawValue), of: worker, state))
    records.afterSaves(done)
  }

  private func save(_ record: WorkerRecord) {
    let id = record.name
    records.save(record) { [log] in log(.error, "\(id): a later daemon won't find it: \($0)") }
  }

  /// The worker's record; nil if it has no process that could be found.
  func record(of worker: WorkerUnit, state: WorkerState) -> WorkerRecord? {
    guard let process = worker.process, state != .terminated else { return nil }
    var state = state
    if state == .hibernated {
      // Hibernated without an image would mean that the memory is lost. It isn't: the worker only
      // couldn't be woken after its memory was restored. Nor is it lost with an image if the worker
      // wasn't certainly hibernated.
      let expectation = worker.image?.resting.expectation
      if expectation?.isOfHibernated != true { state = expectation == nil ? .suspended : .resuming }
    }
    let record = WorkerRecord(process, bootID: bootID, state: state.rawValue)
    return completed(record, of: worker, state)
  }

  private func completed(
    _ base: WorkerRecord, of worker: WorkerUnit, _ state: WorkerState
  ) -> WorkerRecord {
    var record = base
    record.name = worker.id.name
    record.imagePath = worker.image?.path
    let image = worker.image?.resting.expectation
    record.imageMark = state == .hibernated ? image?.mark?.text : nil
    // If a daemon dies while it hibernates or resumes the worker, nothing else says whether the
    // next daemon sees the directory in which the image is.
    record.imageDirectory = directory(of: worker)?.text
    record.purgeable = worker.conversation?.offers.inodes ?? []
    record.wasInFront = state == .foreground || worker.returnsToFront
    record.importance = worker.configuration.importance
    record.watchdog = worker.watchdogInterval?.wholeNanoseconds
    record.alarm = worker.wakeWatch?.timer.due?.nanoseconds
    record.asleepSince = worker.asleepSince?.nanoseconds
    // When a wake begins, the worker's time-outs may already have been corrected.
    record.waits = state == .resuming ? nil : worker.waits.kept
    record.external = worker.external.map { $0.mayBeTerminated ? .mayBeTerminated : .mayNot }
    record.rule = worker.external?.rule
    record.settings = worker.configuration.settings
    if worker.external != nil { record.keepAdoption(of: worker.configuration) }
    if let chosen = worker.external?.chosen {
      (record.policy, record.settings) = (chosen.name, chosen.settings)
      record.isShadow = chosen.isShadow
    }
    return record
  }

  /// The directory of the worker's image, or of the image from which its pages still come back, or
  /// in which its next image will be.
  private func directory(of worker: WorkerUnit) -> ImageDirectory? {
    let missing = worker.missing.flatMap { $0.bytes > 0 ? $0.directory : nil }
    return worker.image?.resting.expectation.directory ?? missing ?? images
  }
}
