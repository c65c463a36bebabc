import Control

/// The data of a worker's own page.
struct WorkerPage: Encodable, Sendable {
  var worker: WorkerReport
  /// The state in words.
  var shown: String
  var explanation: ExplanationReport?
  var kinds: FootprintKinds?
  /// The command in shell syntax.
  var command: String
  /// The positions in both orders, from 1 on.
  var terminated: Int?
  var hibernated: Int?
  var snapshot: ShownSnapshot?
}

/// The data of a page whose worker doesn't exist, or is unknown while no daemon answers.
struct MissingPage: Encodable, Sendable {
  var problem: String
}
