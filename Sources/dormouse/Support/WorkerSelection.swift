import ArgumentParser
import Control
import Glibc

/// The workers that a verb is applied to: some by name, or all for which the verb makes sense.
struct WorkerSelection: ParsableArguments {
  @Flag(help: "Apply it to all workers for which it makes sense.") var all = false
  @Flag(help: "Show what would happen, and change nothing.") var dryRun = false
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @Argument(
    help: "The workers: names, groups (@bots), or patterns such as 'bot0*'.", completion: .workers)
  var names: [String] = []
  @OptionGroup var connection: ConnectionOptions

  /// Checks the arguments of a verb that needs a worker, for its `validate`.
  func check() throws {
    if all, !names.isEmpty { throw ValidationError("Name workers or use --all, not both.") }
    if !all, names.isEmpty { throw ValidationError("Name workers, or use --all.") }
  }

  /// The workers that a verb acts on, and its plans.
  struct Choice {
    /// The names to act on; empty with `--dry-run`, which only has plans.
    var names: [String] = []
    /// The reason why there is nothing to do; only with `--all`.
    var nothing: String?
    /// The changes that would be made, and the errors; only with `--dry-run`.
    var plans: [WorkerAttempt] = []
  }

  /// Chooses the workers. Names are used unchanged; patterns (`bot0*`) are replaced by the workers
  /// that match.
  func choose(_ verb: ControlRequest.Verb, with daemon: inout DaemonConnection) throws -> Choice {
    var choice = Choice(names: names)
    if all {
      choice.names = try (daemon.ask(.ps).workers ?? []).filter(verb.concerns).map(\.name)
      if choice.names.isEmpty { choice.nothing = verb.nothing }
    } else if names.contains(where: WorkerPatterns.isPattern) {
      choice.names = try WorkerPatterns(names).names(among: daemon.ask(.ps).workers ?? [])
    }
    guard dryRun else { return choice }
    for name in choice.names {
      let id = try daemon.client.send(.status, worker: name)
      let response = try daemon.wait(for: id, what: "status \(name)")
      guard response.result == .done, let worker = response.workers?.first else {
        choice.plans.append(
          WorkerAttempt(
            worker: name, code: response.result.code, text: response.text,
            failure: daemon.failure(response, of: name)))
        continue
      }
      choice.plans.append(
        WorkerAttempt(worker: name, code: "planned", text: verb.forecast(worker)))
    }
    choice.names = []
    return choice
  }
}

/// Names of workers, and patterns with a shell's syntax.
struct WorkerPatterns {
  var patterns: [String]

  init(_ patterns: [String]) { self.patterns = patterns }

  /// Returns whether a text is a pattern: no worker's name has these characters. `@bots` stands for
  /// the workers of a group.
  static func isPattern(_ text: String) -> Bool {
    text.hasPrefix("@") || text.contains { "*?[".contains($0) }
  }

  /// Returns the names in the order of the patterns, each worker once. An unknown name stays, and
  /// the daemon reports it. A pattern without a match is an error.
  func names(among workers: [WorkerReport]) throws -> [String] {
    var chosen: [String] = []
    for pattern in patterns {
      let fitting =
        Self.isPattern(pattern)
        ? workers.filter { fits(pattern, $0) }.map(\.name) : [pattern]
      if fitting.isEmpty { throw Self.failure(pattern, among: workers) }
      chosen += fitting.filter { !chosen.contains($0) }
    }
    return chosen
  }

  /// Returns the workers that match a pattern or a name, in the daemon's order.
  func workers(among workers: [WorkerReport]) throws -> [WorkerReport] {
    for pattern in patterns where !workers.contains(where: { fits(pattern, $0) }) {
      throw Self.failure(pattern, among: workers)
    }
    return workers.filter { fits($0) }
  }

  func fits(_ worker: WorkerReport) -> Bool { patterns.contains { fits($0, worker) } }

  private func fits(_ pattern: String, _ worker: WorkerReport) -> Bool {
    guard pattern.hasPrefix("@") else { return fits(pattern, worker.name) }
    let group = String(pattern.dropFirst())
    return (worker.groups ?? []).contains { fits(group, $0) }
  }

  private func fits(_ pattern: String, _ name: String) -> Bool {
    pattern == name || fnmatch(pattern, name, 0) == 0
  }

  private static func failure(
    _ pattern: String, among workers: [WorkerReport]
  ) -> CommandFailure {
    let isGroup = pattern.hasPrefix("@")
    let candidates = isGroup ? groups(of: workers) : workers.map(\.name)
    let what =
      isGroup
      ? "no worker is in the group"
      : isPattern(pattern) ? "no worker's name fits" : "there is no worker"
    return CommandFailure(
      .unknownWorker, "\(what) `\(escaped(pattern))`\(hint(for: pattern, among: candidates))")
  }

  /// The groups as they are written, such as `@bots`, by name and each once.
  static func groups(of workers: [WorkerReport]) -> [String] {
    Set(workers.flatMap { $0.groups ?? [] }).sorted().map { "@\($0)" }
  }
}

/// What a verb would do with workers, for `--all` and `--dry-run`.
extension ControlRequest.Verb {
  func concerns(_ worker: WorkerReport) -> Bool {
    // External workers are started and ended by their own manager.
    switch self {
    case .suspend, .warn: return isAwake(worker)
    case .trim: return isTrimmable(worker)
    case .fill: return isTrimmable(worker) && (worker.trim?.swapped ?? 0) > 0
    case .foreground, .background: return isRunning(worker) && worker.state != "\(self)"
    case .shadow, .enforce, .protect, .remove, .removeRunning: return true
    case .unprotect: return worker.protection != nil
    case .release: return worker.isAdopted == true
    case .hibernate: return isRunning(worker) && worker.state != "hibernated"
    case .wake: return isRunning(worker) && !isAwake(worker)
    default: break
    }
    let isOurs = worker.isAdopted != true && isRunning(worker) == (self != .start)
    return isOurs && (self != .reloadWorker || worker.reloadSignal != nil)
  }

  var nothing: String {
    switch self {
    case .start: "no worker to start"
    case .reloadWorker: "no worker that runs has a `reload_signal`"
    case .foreground: "no worker to bring to the foreground"
    case .background: "no worker to send to the background"
    case .suspend, .warn: "no worker is awake"
    case .fill: "no running worker has memory out of RAM"
    case .shadow, .enforce, .protect, .remove, .removeRunning: "there are no workers"
    case .unprotect: "no worker is protected"
    case .release: "no worker is adopted"
    case .hibernate: "no worker to hibernate"
    case .wake: "no worker sleeps"
    default: "no worker runs"
    }
  }

  /// The sentence about what the verb would do with a worker, escaped.
  func forecast(_ worker: WorkerReport) -> String {
    let name = escaped(worker.name)
    let state = escaped(worker.state)
    let facts = facts(worker)
    func unchanged(_ reason: String) -> String { "\(name) would not change: it is \(reason)" }
    func changed(_ change: String) -> String { "\(name) would be \(change) (\(facts))" }
    if worker.isAdopted == true, [.start, .stop, .restart].contains(self) {
      return unchanged("adopted, and its own supervisor starts and stops it")
    }
    switch (self, isRunning(worker)) {
    case (.shadow, _): return "\(name): shadow mode; decisions would be logged, not applied"
    case (.enforce, _): return "\(name): the policy would apply"
    case (.protect, _): return "\(name) would not be terminated for lack of memory"
    case (.unprotect, _): return "\(name): its policy alone would decide about its termination"
    case (.release, _):
      return worker.isAdopted == true ? changed("woken and released") : unchanged("not adopted")
    case (.remove, true): return unchanged("running (\(facts))")
    case (.remove, false): return "\(name) would be removed, if no configuration declares it"
    case (.removeRunning, let isRunning):
      return "\(name) would be \(isRunning ? "stopped and " : "")removed, if no configuration "
        + "declares it"
    case (.reloadWorker, _) where worker.reloadSignal == nil:
      return "\(name) would not change: it has no `reload_signal` in the configuration"
    case (.reloadWorker, true):
      return changed("sent \(escaped(worker.reloadSignal ?? "")) to reload")
    case (.start, true): return unchanged("already running")
    case (.start, false), (.restart, false): return "\(name) would be started"
    case (.stop, false), (.terminate, false), (.reloadWorker, false), (.suspend, false),
      (.hibernate, false), (.wake, false), (.foreground, false), (.background, false),
      (.warn, false), (.trim, false), (.fill, false):
      return unchanged("not running")
    case (.foreground, true), (.background, true):
      return worker.state == "\(self)"
        ? unchanged("already in the \(self)") : "\(name) would go to the \(self) (\(facts))"
    case (.warn, true):
      return isAwake(worker)
        ? changed("asked to free memory, if it has a channel for that")
        : unchanged("\(state) and can't free memory")
    case (.trim, true):
      return isTrimmable(worker) ? changed("trimmed, if nothing prevents it") : unchanged(state)
    case (.fill, true):
      let swapped = worker.trim?.swapped ?? 0
      if !isTrimmable(worker) { return unchanged(state) }
      if swapped > 0 { return changed("filled: \(sizeText(swapped)) are out of RAM") }
      return "\(name) would not change: all of its memory is in RAM"
    case (.suspend, true):
      return isAwake(worker) ? changed("suspended") : unchanged("already \(state)")
    case (.hibernate, true):
      return worker.state == "hibernated"
        ? unchanged("already hibernated") : changed("hibernated, if nothing prevents it")
    case (.wake, true): return isAwake(worker) ? unchanged("awake") : changed("woken")
    case (.stop, true): return changed("stopped")
    case (.restart, true): return changed("stopped and started")
    case (.terminate, true): return changed("terminated")
    default: return "\(name) would not change"
    }
  }

  private func isTrimmable(_ worker: WorkerReport) -> Bool {
    ["foreground", "background"].contains(worker.state)
  }

  private func isRunning(_ worker: WorkerReport) -> Bool { worker.state != "terminated" }

  private func isAwake(_ worker: WorkerReport) -> Bool {
    ["launching", "foreground", "background"].contains(worker.state)
  }

  private func facts(_ worker: WorkerReport) -> String {
    let pid = worker.pid.map { ", pid \($0)" } ?? ""
    return "\(escaped(worker.state))\(pid), \(sizeText(worker.footprint))"
  }
}
