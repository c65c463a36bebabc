import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

/// How a worker of an earlier daemon was found.
enum SurvivorRest {
  /// It rests just as its record says: suspended, or hibernated in the image.
  case asleep(WorkerState, ImageOnDisk?)
  /// It is hibernated, and there is no image at this path.
  case withoutImage(String)
  /// Recovery has to verify its memory, and lets it run.
  case inDoubt
}

/// The watch of a sleeping worker's inputs.
struct SurvivorWatch {
  /// Why not all of them can be watched.
  var refusal: SystemCallError?
}

struct SurvivorRecovery {
  /// How much of its memory was restored.
  var result: Result<ByteCount, HibernationError>
  /// The image that is left afterwards.
  var image: ImageOnDisk?
}

/// The functions of the daemon that `SurvivorAdoption` uses. Tests provide their own.
protocol SurvivorHost: AnyObject {
  /// This daemon may not open the sockets of workers that another one has started (Yama).
  var forbidsStrangers: Bool { get }
  func loadRecords() throws(WorkerRecordError) -> (
    records: [WorkerRecord], failures: [WorkerRecordError]
  )
  /// The process that it describes runs.
  func life(of record: WorkerRecord) -> ProcessLife
  /// It ended while there was no daemon: only the note of its end stays.
  func forget(_ record: WorkerRecord)
  /// Removes images and snapshots of workers that no record names.
  func removeOrphans()

  /// The registry has the worker from then on, with its process, and the daemon is notified of its end.
  func takeOver(_ record: WorkerRecord) throws
  func rest(of record: WorkerRecord) -> SurvivorRest
  /// It sleeps on as its record says. A recovery wakes it, which verifies its memory.
  func leaveAsleep(_ record: WorkerRecord, with image: ImageOnDisk?)
  /// It couldn't be woken, and a recovery has to wake it as well.
  func staysAsleep(_ id: WorkerID, with image: ImageOnDisk?)
  /// Watches a sleeping worker's inputs and its wake timer. Calls back on the loop, once and later; with nil if
  /// its run has ended, or the worker was removed meanwhile.
  func watchInputs(of record: WorkerRecord, then: @escaping (SurvivorWatch?) -> Void)
  /// Lets it run with all of its memory. Calls back as `watchInputs` does.
  func recover(_ record: WorkerRecord, then: @escaping (SurvivorRecovery?) -> Void)
  /// Its memory can't be verified: it never runs again.
  func killUnverified(_ id: WorkerID)
  /// For the next daemon.
  func save(_ id: WorkerID, _ state: WorkerState)
  /// Its messages are received from now on, as those of any other worker.
  func isBack(_ id: WorkerID)
  /// For input that had come before it was watched.
  func wakeForWhatWaits(_ id: WorkerID)
  func log(_ priority: DaemonLog.Priority, _ text: String)
}
