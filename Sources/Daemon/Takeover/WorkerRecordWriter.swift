import Lifecycle
import Policy
import Supervision

/// Records what a later daemon needs to find a worker again. Belongs to the loop's thread.
struct WorkerRecordWriter {
  let records: any WorkerRecords
  let bootID: String
  let log: DaemonLog

  func save(_ runtime: WorkerUnit, state: WorkerState) {
    if let record = record(of: runtime, state: state) { save(record) }
  }

  /// Of a process whose program doesn't run yet.
  ///
  /// - Parameter done: called on another thread, when the record is on disk or can't be written.
  func save(
    _ runtime: WorkerUnit, launching forked: ForkedWorker, then done: @escaping @Sendable () -> Void
  ) {
    let state = WorkerState.launching
    save(completed(forked.record(bootID: bootID, state: state.rawValue), of: runtime, state))
    records.afterSaves(done)
  }

  private func save(_ record: WorkerRecord) {
    let id = record.name
    records.save(record) { [log] in log(.error, "\(id): a later daemon won't find it: \($0)") }
  }

  /// nil: there is no process to be found.
  func record(of runtime: WorkerUnit, state: WorkerState) -> WorkerRecord? {
    guard let process = runtime.process, state != .terminated else { return nil }
    // Hibernated without an image would mean that its memory is lost. It isn't: the worker only couldn't be
    // woken after its memory was restored.
    let state = state == .hibernated && runtime.image == nil ? .suspended : state
    let record = WorkerRecord(process, bootID: bootID, state: state.rawValue)
    return completed(record, of: runtime, state)
  }

  private func completed(
    _ found: WorkerRecord, of runtime: WorkerUnit, _ state: WorkerState
  ) -> WorkerRecord {
    var record = found
    record.name = runtime.id.name
    record.imagePath = runtime.image?.path
    let image = state == .hibernated ? runtime.image?.resting.expectation : nil
    record.imageMark = image?.mark?.text
    record.imageDirectory = image?.directory?.text
    record.purgeable = runtime.conversation?.offers.inodes ?? []
    record.wasInFront = state == .foreground || runtime.returnsToFront
    record.importance = runtime.configuration.importance
    record.watchdog = runtime.watchdogInterval?.wholeNanoseconds
    record.alarm = runtime.wakeWatch?.timer.due?.nanoseconds
    record.asleepSince = runtime.asleepSince?.nanoseconds
    // From the moment at which it begins to be woken, its time-outs may have been corrected.
    record.waits = state == .resuming ? nil : runtime.waits.kept
    record.external = runtime.external.map { $0.mayBeTerminated ? .mayBeTerminated : .mayNot }
    record.rule = runtime.external?.rule
    record.settings = runtime.configuration.settings
    if runtime.external != nil { record.keepAdoption(of: runtime.configuration) }
    if let chosen = runtime.external?.chosen {
      (record.policy, record.settings) = (chosen.name, chosen.settings)
      record.isShadow = chosen.isShadow
    }
    return record
  }
}
