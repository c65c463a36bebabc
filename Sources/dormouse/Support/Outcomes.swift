import ArgumentParser
import Control

/// The result of a request for one worker.
struct WorkerAttempt {
  var worker: String
  var code: String
  var text: String
  /// The failure; nil if the request succeeded.
  var failure: CommandFailure?

  /// The report of this attempt, with the worker's states before and after it.
  func report(_ before: [String: String], _ after: [String: String]) -> OutcomeReport.Worker {
    OutcomeReport.Worker(
      worker: worker, code: code, text: text, before: before[worker], after: after[worker])
  }
}

extension DaemonConnection {
  /// Returns the states of all workers by name. The result is empty if the daemon doesn't answer
  /// any more.
  mutating func states() -> [String: String] {
    // An outcome without states is still an outcome.
    let workers = try? client.perform(.ps, timeout: .seconds(10)).workers
    return Dictionary((workers ?? []).map { ($0.name, $0.state) }) { first, _ in first }
  }

  /// Sends all requests at once, so that none waits for another, and returns the outcomes in the
  /// order of the names. A failure doesn't stop the other requests.
  mutating func attempt(
    _ verb: ControlRequest.Verb, to names: [String], quietly: Bool = false,
    seconds: Double? = nil
  ) throws -> [WorkerAttempt] {
    var sent: [(id: UInt64, name: String)] = []
    for name in names {
      let id = try client.send(verb, worker: name) { $0.seconds = seconds }
      sent.append((id, name))
    }
    var attempts: [WorkerAttempt] = []
    for (id, name) in sent {
      let response = try wait(for: id, what: "\(verb.rawValue) \(name)")
      let isDone = response.result == .done
      if isDone, !quietly { try Output.line(escaped(response.text)) }
      attempts.append(
        WorkerAttempt(
          worker: name, code: response.result.code, text: response.text,
          failure: isDone ? nil : failure(response, of: name)))
    }
    return attempts
  }

  /// Stops the workers, starts those that have ended, and returns the last outcome of each.
  mutating func restart(_ names: [String], quietly: Bool) throws -> [WorkerAttempt] {
    let stopped = try attempt(.stop, to: names, quietly: quietly)
    let ended = stopped.filter { $0.failure == nil }.map(\.worker)
    let started = try attempt(.restart, to: ended, quietly: quietly)
    return stopped.map { stop in started.first { $0.worker == stop.worker } ?? stop }
  }

  /// Applies a verb to chosen workers, and prints the results. The first failure decides the exit
  /// code.
  mutating func apply(
    _ name: String, to selection: WorkerSelection, _ verb: ControlRequest.Verb,
    by perform: (inout DaemonConnection, [String]) throws -> [WorkerAttempt]
  ) throws {
    let before = selection.json ? states() : [:]
    let choice = try selection.choose(verb, with: &self)
    if !selection.json {
      if let nothing = choice.nothing { try Output.line(nothing) }
      for plan in choice.plans where plan.failure == nil { try Output.line(plan.text) }
    }
    let attempts = selection.dryRun ? choice.plans : try perform(&self, choice.names)
    if selection.json {
      let after = selection.dryRun ? [:] : states()
      var report = OutcomeReport(
        verb: name, workers: attempts.map { $0.report(before, after) },
        isDryRun: selection.dryRun ? true : nil)
      if let nothing = choice.nothing { (report.code, report.text) = ("nothing_to_do", nothing) }
      try Output.json(report)
    }
    try Self.report(attempts.compactMap(\.failure))
  }

  /// Prints one request's outcome as a line or as JSON. It throws an error if the request failed.
  mutating func report(
    _ response: ControlResponse, of verb: String, worker: String? = nil,
    json: Bool, keepsLines: Bool = false
  ) throws {
    let isDone = response.result == .done
    if json {
      let after = worker == nil ? [:] : states()
      let one = worker.map {
        OutcomeReport.Worker(
          worker: $0, code: response.result.code, text: response.text, after: after[$0])
      }
      try Output.json(
        OutcomeReport(
          verb: verb, code: response.result.code, text: response.text,
          workers: one.map { [$0] } ?? []))
    } else if isDone {
      try Output.line(escaped(response.text))
    }
    if !isDone { throw failure(response, of: worker, keepsLines: keepsLines) }
  }

  static func report(_ failures: [CommandFailure]) throws {
    guard let first = failures.first else { return }
    for failure in failures { Output.complain(failure.text) }
    throw ExitCode(first.exit.rawValue)
  }
}
