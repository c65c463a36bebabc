import ArgumentParser
import Control
import Glibc
import Policy
import PolicyFile
import Simulation

struct SimulateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Compare policies on a simulated machine, over a day of traffic.",
    discussion: """
      Thousands of workers, a trace of who is used when, and the engine that the daemon has. The \
      trace is generated (--generate), or read from files (--trace) in the formats of the Azure \
      Functions data sets of 2019 and 2021 or in our own (docs/simulation.md). What things cost on \
      the machine is as measured; --machine changes it. With --check it looks for mistakes of the \
      engine instead, on a machine that does everything wrong.
      """)

  @OptionGroup var source: TraceOptions
  @Option(
    help: ArgumentHelp("Policies to compare: names or files.", valueName: "a,b,…"),
    completion: .policies)
  var policy = "ios-5,iphone-os-3,server"
  @Option(
    help: ArgumentHelp(
      "Also with this order of termination, as in `terminate.order`; repeat it for more.",
      valueName: "a,b,…"))
  var order: [String] = []
  @Option(
    help: ArgumentHelp(
      "The machine's memory. Default: half of what all workers would hold.", valueName: "size"))
  var memory: String?
  @Option(
    help: ArgumentHelp(
      "What things cost, KEY=VALUE,… or a file with a line for each; repeatable.",
      valueName: "settings"), completion: .file())
  var machine: [String] = []
  @Flag(help: "Print everything as JSON.")
  var json = false
  @Flag(help: "Print the table as Markdown.")
  var markdown = false
  @Option(help: ArgumentHelp("Also draw the comparison.", valueName: "file"), completion: .file())
  var svg: String?
  @Option(
    help: ArgumentHelp(
      "Simulate nothing; write the trace in this format (dormouse, azure-2019, azure-2021).",
      valueName: "format"))
  var convert: TraceFormat?
  @Option(
    help: ArgumentHelp("Where to, with --convert.", valueName: "directory"), completion: .directory)
  var output: String?
  @Flag(help: "Check the engine's invariants, for --seed and --seeds from there on.")
  var check = false
  @Option(help: "With --check: how many seeds.")
  var seeds: UInt64 = 1

  func validate() throws {
    try source.validate(isChecking: check)
    if (convert == nil) != (output == nil) {
      throw ValidationError("--convert and --output go together.")
    }
    if check, convert != nil || json || svg != nil {
      throw ValidationError("--check goes with --seed and --seeds only.")
    }
    if seeds == 0 { throw ValidationError("--seeds is at least 1.") }
  }

  func run() throws {
    if check { return try SeedCheck(first: source.seed, count: seeds).run() }
    let variants = convert == nil ? try policies() : []
    // A picture that can't be written is reported before the work.
    let trace = try source.load()
    if let convert, let output { return try TraceFiles.write(trace, convert, to: output) }
    let machine = try model(trace)
    let picture = try svg.map { try PictureFile($0) }
    var reports: [FleetReport] = []
    for (place, variant) in variants.enumerated() {
      var simulation = FleetSimulation(trace: trace, machine: machine, policy: variant)
      let title = "\(variant.name), \(place + 1) of \(variants.count)"
      reports.append(simulation.run { Progress.show("simulating \(title)", $0) })
    }
    Progress.clear()
    let comparison = FleetComparison(trace: trace, machine: machine, reports: reports)
    try picture?.write(comparison.picture)
    if json { return try Output.json(comparison) }
    try Output.write(
      comparison.rendered(asMarkdown: markdown, width: markdown ? nil : Terminal.width))
  }

  // MARK: what is compared

  private func policies() throws -> [LifecyclePolicy] {
    var policies: [LifecyclePolicy] = []
    for name in policy.split(separator: ",") {
      let result = PolicyCheck.ofThisProcess().policy(String(name))
      PolicyCheck.complain(result.diagnostics)
      guard let value = result.value else {
        throw ExitCode(CommandExit.badConfiguration.rawValue)
      }
      policies.append(value.policy)
    }
    guard !policies.isEmpty else {
      throw CommandFailure(exit: .usage, text: "--policy names no policy")
    }
    let orders = try order.map(criteria)
    return policies.flatMap { policy in
      orders.isEmpty ? [policy] : orders.map { policy.ordered(by: $0) }
    }
  }

  private func criteria(_ text: String) throws -> [TerminationRules.Criterion] {
    try text.split(separator: ",").map { name in
      if let criterion = TerminationRules.Criterion(rawValue: String(name)) { return criterion }
      let known = TerminationRules.Criterion.allCases.map(\.rawValue).joined(separator: ", ")
      throw CommandFailure(
        exit: .usage, text: "--order: unknown '\(escaped(String(name)))'; known: \(known)")
    }
  }

  private func model(_ trace: Trace) throws -> MachineModel {
    let half = max(ByteCount.megabytes(64), ByteCount(trace.footprint.bytes / 2))
    var model = MachineModel(memory: half)
    var settings = try machine.flatMap(MachineSettings.read)
    if let memory { settings.append(("memory", memory)) }
    for (key, value) in settings {
      guard let problem = model.set(key, value) else { continue }
      throw CommandFailure(
        exit: .usage, text: "--machine \(escaped("\(key)=\(value)")): \(problem)")
    }
    return model
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

/// A line on standard error that changes, on a terminal only.
enum Progress {
  static func show(_ what: String, _ share: Double) {
    guard isatty(STDERR_FILENO) == 1 else { return }
    Output.standardError("\r\u{1B}[K\(what): \(Int(share * 100)) %")
  }

  static func clear() {
    if isatty(STDERR_FILENO) == 1 { Output.standardError("\r\u{1B}[K") }
  }
}
