import Control

/// The `--json` output of a verb that changes something: start, stop, reload and the like.
struct OutcomeReport: Codable, Hashable, Sendable {
  /// The verb as it is typed, with `_` for a blank: `suspend`, `pressure_set`.
  var verb: String
  /// The code is `done`, or that of the first worker that failed: `refused`, `failed`,
  /// `unknown_worker` or `bad_request`. `nothing_to_do` means that the verb applies to no worker.
  var code: String
  var text: String
  /// True with `--dry-run`: nothing was changed.
  var isDryRun: Bool?
  /// The workers that were named or chosen, in that order.
  var workers: [Worker] = []

  struct Worker: Codable, Hashable, Sendable {
    var worker: String
    /// The code is `done`, `refused`, `failed`, `unknown_worker` or `bad_request`. With `--dry-run`
    /// it may also be `planned`.
    var code: String
    var text: String
    /// The worker's state before the request, if it is known.
    var before: String?
    /// The worker's state after the response, if it is known.
    var after: String?
  }
}

extension OutcomeReport {
  /// Summarizes workers. The first failure decides the code, as it decides the exit code.
  init(verb: String, workers: [Worker], isDryRun: Bool? = nil) {
    let failure = workers.first { $0.code != "done" && $0.code != "planned" }
    let failures = workers.count { $0.code != "done" && $0.code != "planned" }
    self.init(
      verb: verb, code: failure?.code ?? "done",
      text: failures == 0
        ? counted(workers.count, "worker")
        : "\(failures) of \(counted(workers.count, "worker")) failed",
      isDryRun: isDryRun, workers: workers)
  }
}

extension ControlResponse.Result {
  /// The code for programs, in snake_case.
  var code: String {
    switch self {
    case .done: "done"
    case .refused: "refused"
    case .failed: "failed"
    case .unknownWorker: "unknown_worker"
    case .badRequest: "bad_request"
    case .event: "event"
    }
  }
}
