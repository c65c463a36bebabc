/// The `--json` output of a verb that does something: start, stop, reload and the like.
public struct OutcomeReport: Codable, Hashable, Sendable {
  /// As it is typed, with `_` for a blank: `suspend`, `pressure_set`.
  public var verb: String
  /// `done`, or the code of the first worker that failed: `refused`, `failed`, `unknown_worker` or
  /// `bad_request`. `nothing_to_do`: the verb concerns no worker.
  public var code: String
  public var text: String
  /// With `--dry-run`: nothing has happened.
  public var isDryRun: Bool?
  /// Those that were named or chosen, in that order.
  public var workers: [Worker]

  public struct Worker: Codable, Hashable, Sendable {
    public var worker: String
    /// `done`, `refused`, `failed`, `unknown_worker` or `bad_request`; with `--dry-run` also `planned`.
    public var code: String
    public var text: String
    /// Its states before the request and after the answer, where they are known.
    public var before: String?
    public var after: String?

    public init(
      worker: String, code: String, text: String, before: String? = nil, after: String? = nil
    ) {
      self.worker = worker
      self.code = code
      self.text = text
      self.before = before
      self.after = after
    }
  }

  public init(
    verb: String, code: String, text: String, isDryRun: Bool? = nil, workers: [Worker] = []
  ) {
    self.verb = verb
    self.code = code
    self.text = text
    self.isDryRun = isDryRun
    self.workers = workers
  }

  /// Of workers alone: the first failure decides the code, as it decides the exit code.
  public init(verb: String, workers: [Worker], isDryRun: Bool? = nil) {
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
  /// For programs, in snake_case.
  public var code: String {
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
