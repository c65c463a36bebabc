import Control

/// What a worker's own page shows.
struct WorkerPage: Encodable, Sendable {
  var worker: WorkerReport
  /// Its state in words.
  var shown: String
  var explanation: ExplanationReport?
  var kinds: FootprintKinds?
  /// The command as a shell has it.
  var command: String
  /// Its places in both orders, from 1 on.
  var terminated: Int?
  var hibernated: Int?
  var snapshot: ShownSnapshot?
}

/// A page of a worker that doesn't exist, or isn't known while no daemon answers.
struct MissingPage: Encodable, Sendable {
  var problem: String
}
