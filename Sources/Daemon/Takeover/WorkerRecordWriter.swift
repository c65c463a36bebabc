import Lifecycle
import Policy
import Supervision

/// Records what a later daemon needs to find a worker again. It belongs to the event loop's thread.
struct WorkerRecordWriter {
  let records: any WorkerRecords
  let bootID: String
  let log: DaemonLog

  func save(_ worker: WorkerUnit, state: WorkerState) {
    if let record = record(of: worker, state: state) { save(record) }
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
    // Hibernated without an image would mean that the memory is lost. It isn't: the worker only
    // couldn't be woken after its memory was restored.
    let state = state == .hibernated && worker.image == nil ? .suspended : state
    let record = WorkerRecord(process, bootID: bootID, state: state.rawValue)
    return completed(record, of: worker, state)
  }

  private func completed(
    _ base: WorkerRecord, of worker: WorkerUnit, _ state: WorkerState
  ) -> WorkerRecord {
    var record = base
    record.name = worker.id.name
    record.imagePath = worker.image?.path
    let image = state == .hibernated ? worker.image?.resting.expectation : nil
    record.imageMark = image?.mark?.text
    record.imageDirectory = image?.directory?.text
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
}
