import Control
import Lifecycle
import Policy
import PolicyFile

/// Reports the engine's remedy as a line for a file of the configuration.
struct RemedyReporter {
  let engine: Engine
  let origins: Origins
  let isWrapper: Bool
  let now: Instant

  /// The remedy for a worker; nil if there is none.
  ///
  /// - Parameter activity: how often the worker is used.
  func remedy(
    of id: WorkerID, _ facts: WorkerFacts?, activity: ActivityReport?
  ) -> RemedyReport? {
    // A worker's own writes continue, however short the times without use are.
    if facts?.worker.sample.sign == .writes, engine.state(of: id)?.runs == true { return nil }
    let quiet = activity?.medianQuietSeconds.map { Duration.seconds($0) }
    guard let remedy = engine.remedy(of: id, quiet: quiet, at: now) else { return nil }
    if activity?.advice?.code == Self.regularUse, let facts, facts.worker.isDeclared,
      engine.state(of: id)?.runs == true, let report = healthChecks(id, facts)
    {
      return report
    }
    var report = RemedyReport(
      text: remedy.sentence,
      settings: remedy.settings.map { .init(key: $0.key.path, value: $0.value) },
      command: remedy.command)
    guard !report.settings.isEmpty else { return report }
    let settings = report.settings.map { ($0.key, $0.value) }
    if isWrapper {
      writeWrapOptions(&report)
      return report
    }
    let pairs = settings.map { "\($0.0)=\($0.1)" }
    let options = pairs.map { "--set \($0)" }.joined(separator: " ")
    if facts?.worker.external != nil, facts?.rule == nil {
      report.line = options
      report.place = "as options of `dormouse adopt`"
      return report
    }
    // A key for all workers together, such as the disk's, is refused for one worker.
    guard (try? PolicySettings.ofOneWorker(pairs)) != nil else {
      let inside = origins.lines(of: settings, worker: nil)
      report.line = inside?.text ?? OverrideLine.text(settings)
      report.place =
        inside.map { "\(Self.location(of: $0.section)), in `policy_overrides:`" }
        ?? "in dormouse.yaml, for all workers"
      return report
    }
    guard facts?.worker.isDeclared == true || facts?.rule != nil else {
      report.line = options
      report.place = "as options of `dormouse run`, when it is started next"
      return report
    }
    let name = facts?.rule.map(Origins.name(ofRule:)) ?? id.name
    if let (section, text) = origins.lines(of: settings, worker: name) {
      report.line = text
      (report.file, report.fileLine) = (section.file, section.position?.line)
      let owner = facts?.rule.map { "the rule `\($0)` of `adopt:`" } ?? "`\(id.name):`"
      report.place = "\(Self.location(of: section)), in `policy:` of \(owner)"
      return report
    }
    report.line = OverrideLine.policy(settings)
    locate(&report, id, rule: facts?.rule)
    return report
  }

  private func writeWrapOptions(_ report: inout RemedyReport) {
    // The option --idle-after shortens the time until the suspension too.
    let isByIdle = report.settings.contains { $0.key == "foreground.idle_after" }
    let settings = report.settings.filter { !isByIdle || $0.key != "background.suspend_after" }
    let options = settings.map { setting in
      Self.wrapOptions[setting.key].map { "\($0) \(setting.value)" }
    }
    if options.contains(nil) {
      report.line = OverrideLine.flow(report.settings.map { ($0.key, $0.value) })
      report.place = "in the file of `dormouse wrap --policy FILE`"
    } else {
      report.line = options.compactMap(\.self).joined(separator: " ")
      report.place = "as options of `dormouse wrap`"
    }
  }

  private static let regularUse = "regular_use"
  /// The keys for which `dormouse wrap` has an option.
  private static let wrapOptions = [
    "foreground.idle_after": "--idle-after", "hibernate.after": "--hibernate-after",
    "background.wake_for_timers": "--wake-for-timers",
  ]

  /// The remedy for health checks that keep a worker awake; nil if those at its port are answered
  /// already, so that its use is another.
  private func healthChecks(_ id: WorkerID, _ facts: WorkerFacts) -> RemedyReport? {
    let checks = facts.worker.configuration.healthChecksWhileAsleep
    let answered = checks.first { $0.port == facts.usedPort }
    if answered?.path != nil { return nil }
    // The operator has to fill in a port that isn't known, and the path without which a connection
    // counts as a use.
    let new = (facts.usedPort.map { "\($0)" } ?? "PORT") + (answered == nil ? "" : "/PATH")
    let others = checks.filter { $0 != answered }.map(\.text)
    let value = others.isEmpty ? new : "[\((others + [new]).joined(separator: ", "))]"
    var report = RemedyReport(
      text: "if its regular uses are health checks, they are answered for it while it sleeps",
      settings: [.init(key: "health_checks_while_asleep", value: value)])
    report.line =
      "health_checks_while_asleep: \(value)"
      + (checks.isEmpty ? "" : "  # instead of the one that is there")
    locate(&report, id, rule: nil)
    return report
  }

  /// The position of a section, such as `in /etc/dormouse.yaml, line 7`.
  private static func location(of origin: Origin) -> String {
    "in \(origin.file ?? "dormouse.yaml")" + (origin.position.map { ", line \($0.line)" } ?? "")
  }

  private func locate(_ report: inout RemedyReport, _ id: WorkerID, rule: String?) {
    let origin = origins.origin(ofWorker: rule.map(Origins.name(ofRule:)) ?? id.name)
    report.file = origin.file
    report.fileLine = origin.position?.line
    let file = report.file ?? "dormouse.yaml"
    let entry = rule.map { "the rule `\($0)` of `adopt:`" } ?? "`\(id.name):` of `workers:`"
    let line = report.fileLine.map { " (line \($0))" } ?? ""
    report.place = "in \(file), under \(entry)\(line)"
  }
}

extension WorkerFacts {
  /// The port through which the worker is used; nil if none is known, or if it could be one of
  /// several.
  fileprivate var usedPort: UInt16? {
    let sample = worker.sample
    return sample.source?.port ?? (sample.ports.count == 1 ? sample.ports.first : nil)
  }
}
