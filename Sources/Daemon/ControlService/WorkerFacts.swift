import Control
import Hibernation
import Lifecycle
import Policy
import PolicyFile
import Supervision

/// What the daemon, and not the engine, knows about a worker, for reports that decide by it.
struct WorkerFacts {
  let worker: WorkerUnit
  /// The bytes on disk: of its image, as its record has it, and of its base.
  var imageLength: Int64?
  var baseSize: Int64 = 0
  /// The bytes that are in the image of a trim only.
  var bytesInTrimImage: Int64 = 0
  /// What it waits for and can't be woken by.
  var unwatched: [String] = []
  /// Its earlier runs, and whether it is started again.
  var history = RunHistory()
  /// The workers that it waits for, as a clause and by name; nil if it waits for none.
  var awaited: (text: String, workers: [String])?

  /// The rule that adopted it; nil if none did.
  var rule: String? { worker.external?.rule }
}

/// The costs of a worker's last hibernation.
struct LastHibernation {
  var written: Int64
  var unchanged: Int64
  var seconds: Double
  var footprintBefore: ByteCount
}
