import ArgumentParser
import Control
import Glibc

struct PressureCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pressure", abstract: "Simulate memory pressure, to try the policy.",
    subcommands: [PressureSetCommand.self])
}

struct PressureSetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Set the pressure level for a time, or end that.",
    discussion: """
      Until the time is over, the pressure level is at least this one, and the policy's ladder \
      acts as in a real shortage: workers are asked to free memory, hibernated and, if the ladder \
      says so, terminated one after the other. Then, or with `auto`, the level falls to the \
      measured one, after the policy's pressure.clear_after.

      If workers may be terminated, the verb lists them and asks first. If standard input is no \
      terminal, it refuses. --yes continues without a question. In shadow mode, decisions are only \
      logged. `dormouse warn --all` only asks workers to free memory.

      Examples:
        dormouse pressure set critical --dry-run
        dormouse pressure set warning --for 1m
        dormouse pressure set auto
      """)
  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("Keep the level for this long, at most 24h.", valueName: "time"))
  var time = "30s"
  @Flag(help: "Show what would happen, and change nothing.") var dryRun = false
  @Flag(name: .shortAndLong, help: "Don't ask, although workers may be terminated.")
  var yes = false
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "The level; auto: as measured.") var level: Level

  enum Level: String, ExpressibleByArgument, CaseIterable {
    case warning, urgent, critical, auto
  }

  func run() throws {
    let seconds = try secondsOfFor(time, upTo: "24h")
    var daemon = try connection.connect()
    guard !dryRun else { return try forecast(seconds, &daemon) }
    if level != .auto, !yes { try confirm(&daemon) }
    let id = try daemon.client.send(.setPressure) {
      $0.level = level.rawValue
      $0.seconds = level == .auto ? nil : seconds
    }
    let response = try daemon.wait(for: id, what: "pressure set")
    try daemon.report(response, of: "pressure_set", json: json)
  }

  /// Asks the user before a level that terminates workers: a termination can't be undone.
  private func confirm(_ daemon: inout DaemonConnection) throws {
    let ranking = try daemon.ask(.explain, for: \.ranking, about: "the order")
    let victims = names(ranking.termination)
    guard !victims.isEmpty, ranking.isShadow != true else { return }
    let list = victims.joined(separator: ", ")
    guard isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else {
      throw CommandFailure(
        .usage,
        "nothing changed: at \(level.rawValue) these workers may be terminated, in this order: "
          + "\(list); use --yes to continue, or --dry-run to see the whole order")
    }
    Output.standardError(
      "At \(level.rawValue) these workers may be terminated, in this order: \(list)\n"
        + "Continue? [y/N] ")
    let answer = readLine(strippingNewline: true)?.lowercased()
    guard answer == "y" || answer == "yes" else {
      throw CommandFailure(.notDone, "nothing changed")
    }
  }

  private func forecast(_ seconds: Double, _ daemon: inout DaemonConnection) throws {
    let now = try daemon.ask(.status).daemon?.pressure ?? "unknown"
    if level == .auto {
      return try report(plan: "memory pressure would be as measured (now: \(escaped(now)))")
    }
    let ranking = try daemon.ask(.explain, for: \.ranking, about: "the order")
    let until = "at least \(level.rawValue) for \(durationText(seconds))"
    let text = "memory pressure would be \(until) (now: \(escaped(now)))"
    if json { return try report(plan: text, ranking) }
    var lines = [text]
    lines += order("hibernated", ranking.hibernation)
    lines += order("terminated where hibernation instead isn't possible", ranking.termination)
    if lines.count == 1 { lines.append("no worker would be hibernated or terminated") }
    try Output.line(lines.joined(separator: "\n"))
  }

  /// Prints the plan of `--dry-run`.
  private func report(plan text: String, _ ranking: RankingReport? = nil) throws {
    guard json else { return try Output.line(text) }
    func plans(_ entries: [RankingReport.Entry], _ what: String) -> [OutcomeReport.Worker] {
      affected(entries).map {
        OutcomeReport.Worker(
          worker: $0.worker, code: "planned", text: "\($0.worker) would be \(what)",
          before: $0.state, after: what)
      }
    }
    let workers = ranking.map {
      plans($0.hibernation, "hibernated") + plans($0.termination, "terminated")
    }
    try Output.json(
      OutcomeReport(
        verb: "pressure_set", code: "done", text: text, isDryRun: true, workers: workers ?? []))
  }

  /// Returns the workers that the ladder reaches at the level. Protected workers are left out.
  private func affected(_ entries: [RankingReport.Entry]) -> [RankingReport.Entry] {
    let reached = Level.allCases.prefix { $0 != level } + [level]
    return entries.filter { entry in
      entry.obstacles.isEmpty && reached.contains { $0.rawValue == entry.fromPressure }
    }
  }

  private func names(_ entries: [RankingReport.Entry]) -> [String] {
    affected(entries).map { escaped($0.worker) }
  }

  /// Returns the line for one order.
  private func order(_ what: String, _ entries: [RankingReport.Entry]) -> [String] {
    let names = names(entries)
    return names.isEmpty
      ? [] : ["would be \(what), in this order: \(names.joined(separator: ", "))"]
  }
}
