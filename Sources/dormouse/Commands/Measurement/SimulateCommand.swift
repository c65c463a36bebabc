import ArgumentParser
import Control
import Deciding
import Glibc
import func Linux.readText
import Policy
import PolicyFile
import Simulation

struct SimulateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Compare policies on a simulated machine, over a day of traffic.",
    usage: "dormouse simulate [<options>] [--journal [<journal>]]",
    discussion: """
      The daemon's own engine manages thousands of simulated workers. A trace has the times at \
      which each worker is used. It is generated (--generate), or read from files (--trace): in \
      the formats of the Azure Functions data sets of 2019 and 2021, or in Dormouse's own \
      (docs/simulation.md). The costs of each mechanism were measured on a real machine; --machine \
      changes them. With --check nothing is compared: the engine's invariants are checked on a \
      machine on which everything fails.

      With --journal the trace is your own history: when each worker was used, its footprint, the \
      memory of all other processes, and costs if the journal has them. The policy in effect is \
      the first one in the table, and workers keep their own keys. docs/simulation.md says what a \
      journal can't know.

      Examples:
        dormouse simulate --generate daily --workers 1000 --policy standard,server
        dormouse simulate --policy server --order band,footprint --order band,regret
        dormouse simulate --policy server --set hibernate.after=30s
        dormouse simulate --journal --since 7d --set hibernate.after=30s
      """)

  @OptionGroup var source: TraceOptions
  @OptionGroup var history: HistoryOptions
  @Option(
    help: ArgumentHelp(
      "Compare these policies: names or files. Default: \(Self.defaultPolicies); with --journal "
        + "and --set, the policy in effect.", valueName: "a,b,…"),
    completion: .policies)
  var policy: String?
  @OptionGroup var settings: SettingOptions
  @Option(
    help: ArgumentHelp(
      "Use this order of termination, as in `terminate.order`; repeatable, to compare several.",
      valueName: "a,b,…"))
  var order: [String] = []
  @Option(
    help: ArgumentHelp(
      "Give the machine this much memory. Default: half of what all workers would hold; with "
        + "--journal what the machine or the budget has.",
      valueName: "size"))
  var memory: String?
  @Option(
    help: ArgumentHelp(
      "Change what a mechanism costs: KEY=VALUE,… or a file with a line for each; repeatable.",
      valueName: "settings"), completion: .file())
  var machine: [String] = []
  @Option(
    help: ArgumentHelp(
      "Simulate nothing, and write the trace to --output in this format.",
      valueName: "format"))
  var convert: TraceFormat?
  @Option(
    help: ArgumentHelp("The directory of --convert.", valueName: "directory"),
    completion: .directory)
  var output: String?
  @Flag(help: "Check the engine's invariants for --seeds seeds, from --seed on.")
  var check = false
  @Option(help: ArgumentHelp("The number of seeds of --check.", valueName: "count"))
  var seeds: UInt64 = 1
  @Option(
    help: ArgumentHelp("Also draw the comparison into this SVG file.", valueName: "file"),
    completion: .file())
  var svg: String?
  @Flag(help: "Print the table as Markdown.")
  var markdown = false
  @Flag(help: "Print JSON (docs/json.md).")
  var json = false
  @OptionGroup var connection: ConnectionOptions

  private static let defaultPolicies = "\(PolicyLibrary.usualPolicy),ios-5,server,developer"

  func validate() throws {
    try history.validate(
      connection,
      isElsewhere: source.generate != nil || !source.trace.isEmpty || source.workers != nil || check
    )
    try source.validate(isChecking: check)
    if (convert == nil) != (output == nil) {
      throw ValidationError("--convert and --output need each other.")
    }
    if check, convert != nil || json || svg != nil || !settings.isEmpty {
      throw ValidationError("--check takes only --seed and --seeds.")
    }
    if seeds == 0 { throw ValidationError("--seeds is at least 1.") }
  }

  func run() throws {
    try settings.check()
    if check { return try checkSeeds() }
    var variants = convert == nil ? try policies() : []
    let recorded = try history.read(connection)
    let trace = try recorded?.trace ?? source.load()
    if let convert, let output { return try TraceFiles.write(trace, convert, to: output) }
    let machine = try model(trace, recorded)
    // A picture that can't be written is reported before the simulation.
    let picture = try svg.map { try PictureFile($0) }
    if let recorded { variants = try compared(recorded, with: variants) }
    var reports: [FleetReport] = []
    for (index, variant) in variants.enumerated() {
      var simulation = FleetSimulation(
        trace: trace, machine: machine, policy: variant,
        profiles: try recorded?.profiles(under: variant) ?? [:])
      let title = "\(variant.name), \(index + 1) of \(variants.count)"
      reports.append(simulation.run { Progress.show("simulating \(title)", $0) })
    }
    Progress.clear()
    let comparison = FleetComparison(
      trace: trace, machine: machine, reports: reports, history: recorded?.description(machine))
    try picture?.write(comparison.picture)
    if json { return try Output.json(comparison) }
    try Output.write(
      comparison.rendered(asMarkdown: markdown, width: markdown ? nil : Terminal.width))
  }

  /// Checks the engine's invariants on a machine that fails in every possible way. A failing test
  /// names this command.
  private func checkSeeds() throws {
    var events = 0
    for number in 0..<seeds {
      var machine = SimulatedMachine(seed: source.seed &+ number)
      do { try machine.run() } catch {
        Progress.clear()
        throw CommandFailure(.internalError, error.description)
      }
      events += machine.events
      if number & 0xff == 0 { Progress.show("checking", Double(number) / Double(seeds)) }
    }
    Progress.clear()
    try Output.line("\(seeds) seeds from \(source.seed), \(events) events: all invariants held")
  }

  // MARK: what is compared

  private func policies() throws -> [LifecyclePolicy] {
    // The policy in effect is known only after the journal has been read.
    if history.journal, policy == nil, !settings.isEmpty || !order.isEmpty { return [] }
    var policies: [LifecyclePolicy] = []
    for name in (policy ?? Self.defaultPolicies).split(separator: ",") {
      policies.append(try settings.applied(to: PolicyCheck.usable(String(name))))
    }
    guard !policies.isEmpty else {
      throw CommandFailure(.usage, "--policy names no policy")
    }
    return try inOrders(policies)
  }

  private func inOrders(_ policies: [LifecyclePolicy]) throws -> [LifecyclePolicy] {
    let orders = try order.map(criteria)
    return policies.flatMap { policy in
      orders.isEmpty ? [policy] : orders.map { policy.ordered(by: $0) }
    }
  }

  /// Returns the policy in effect, and those to compare it with. If no policy is given, it is
  /// compared with itself after the changes.
  private func compared(
    _ recorded: RecordedHistory, with others: [LifecyclePolicy]
  ) throws -> [LifecyclePolicy] {
    var inForce = recorded.policy
    inForce.name = "\(recorded.policy.name), in effect"
    var changed = try settings.applied(to: recorded.policy)
    changed.name = "\(recorded.policy.name), changed"
    return try [inForce]
      + (others.isEmpty ? inOrders([changed]) : others.filter { $0 != recorded.policy })
  }

  private func criteria(_ text: String) throws -> [TerminationRules.Criterion] {
    try text.split(separator: ",").map { name in
      if let criterion = TerminationRules.Criterion(rawValue: String(name)) { return criterion }
      let allowed = TerminationRules.Criterion.allCases.map(\.rawValue).joined(separator: ", ")
      throw CommandFailure(.usage, "--order: unknown '\(escaped(String(name)))'; known: \(allowed)")
    }
  }

  private func model(_ trace: Trace, _ recorded: RecordedHistory?) throws -> MachineModel {
    let half = max(ByteCount.megabytes(64), ByteCount(trace.footprint.bytes / 2))
    var model = recorded?.machine() ?? MachineModel(memory: half)
    var settings = try machine.flatMap(costs)
    if let memory { settings.append(("memory", memory)) }
    for (key, value) in settings {
      guard let problem = model.set(key, value) else { continue }
      throw CommandFailure(.usage, "--machine \(escaped("\(key)=\(value)")): \(problem)")
    }
    return model
  }

  /// Reads `--machine`: a list, or a file with a line for each setting, in which `#` begins a
  /// comment. The costs of operations are in the units of policy files.
  private func costs(_ text: String) throws -> [(String, String)] {
    let isFile = !text.contains("=")
    let source: String
    do {
      source = isFile ? try readText(text) : text
    } catch {
      throw CommandFailure(.notDone, "can't read --machine: \(error)")
    }
    return try source.split { isFile ? $0.isNewline : $0 == "," }.compactMap { line in
      let bare = line.split(separator: "#", omittingEmptySubsequences: false).first ?? ""
      let fields = bare.split(separator: "=", maxSplits: 1).map { String($0.trimmingBlanks) }
      if fields.isEmpty || bare.allSatisfy(\.isWhitespace) { return nil }
      guard fields.count == 2 else {
        throw CommandFailure(.usage, "--machine takes KEY=VALUE, not '\(escaped(String(bare)))'")
      }
      return (fields[0], fields[1])
    }
  }
}

extension TraceFormat: ExpressibleByArgument {}

extension LifecyclePolicy {
  fileprivate func ordered(by order: [TerminationRules.Criterion]) -> LifecyclePolicy {
    var policy = self
    policy.terminate.order = order
    return policy
  }
}

/// A line of progress on standard error, on a terminal only.
enum Progress {
  static func show(_ what: String, _ share: Double) { show("\(what): \(Int(share * 100)) %") }

  static func show(_ text: String) {
    if isatty(STDERR_FILENO) == 1 { Output.standardError("\r\u{1B}[K\(text)") }
  }

  static func clear() { show("") }
}
