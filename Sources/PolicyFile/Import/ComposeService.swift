import Policy
import YAML

/// Imports one entry of `services:`.
struct ComposeService: WorkerImport {
  private var service: ForeignMapping
  var imported: ImportedWorker
  private let names: Set<String>
  private let variables: ForeignVariables
  private let sink: DiagnosticSink
  private var program: [String]?
  private var hasDirectory = false
  /// The services on which it depends.
  private(set) var needs: [String] = []

  init(
    name: String, _ mapping: YAMLNode.Mapping, names: Set<String>,
    variables: ForeignVariables, sink: DiagnosticSink
  ) {
    service = ForeignMapping(mapping)
    imported = ImportedWorker(name: name)
    imported.isStopped = true
    (self.names, self.variables, self.sink) = (names, variables, sink)
  }

  mutating func worker() -> ImportedWorker {
    command()
    importEnvironment()
    importDependencies()
    importHealthChecks()
    importRestartRules()
    importStopSettings()
    importLimits()
    reportUnreadKeys(service.leftovers)
    return imported
  }

  /// Returns the reason why it can't be started on this machine as it is. nil: it may be started.
  func obstacle(_ isProgram: (String) -> Bool) -> String? {
    guard let first = program?.first else { return "its command is missing" }
    if hasDirectory { return "its directory is in the image" }
    let hasSigns = program?.contains(where: SplitCommand.shellSigns.contains) == true
    if hasSigns { return "its command needs a shell" }
    return isProgram(first) ? nil : "`\(shortened(first))` isn't a program on this machine"
  }

  private mutating func command() {
    let image = service.text("image")
    if let image { report("Its image: `\(shortened(image))`.") }
    let entry = readArguments("entrypoint")
    let command = readArguments("command")
    guard entry != nil || command != nil else {
      report("Its command is the image's: write it here.")
      return add("command", .list([.text("false")]))
    }
    let arguments = (entry ?? []) + (command ?? [])
    program = arguments
    add("command", .list(arguments.map { .text($0) }))
    if entry == nil, let first = arguments.first, first.hasPrefix("-") {
      report(
        "`\(shortened(first))` is an argument of the image's entrypoint: put the program first."
      )
    }
    if let sign = arguments.first(where: { SplitCommand.shellSigns.contains($0) }) {
      report("`\(sign)`: compose runs no shell here; for one, write `[sh, -c, '…']`.")
    }
    if !variables.hasFile, arguments.contains(where: { $0.contains("${") }) {
      report("Variables are those of the daemon's environment; compose also reads `.env`.")
    }
  }

  /// Reads a list, or a line that compose splits as a shell would. Compose runs no shell by itself.
  private mutating func readArguments(_ key: String) -> [String]? {
    guard let node = service.node(key), node.scalar?.isNull != true else { return nil }
    if case .sequence(let items) = node {
      let arguments = items.compactMap { $0.scalar.map { converted($0.string, isCommand: true) } }
      return arguments.isEmpty ? nil : arguments
    }
    let line = converted(node.scalar?.string ?? "", isCommand: true)
    guard let arguments = ComposeTokenizer.split(line) else {
      sink.error(
        at: node.position,
        "`\(shortened(imported.name)).\(key)` has a quote or a `\\` without its end")
      return nil
    }
    return arguments.isEmpty ? nil : arguments
  }

  private func converted(_ text: String, isCommand: Bool = false) -> String {
    variables.converted(text, isCommand: isCommand)
  }

  private mutating func importEnvironment() {
    if let directory = service.text("working_dir") {
      hasDirectory = true
      report(
        "`working_dir: \(shortened(directory))` is a path in the image: set `directory` yourself.")
    }
    let files = environmentFiles()
    if !files.isEmpty { add("env_file", .list(files.map { .text($0) })) }
    var pairs = service.variables("environment")
    let inFile = service.inherited.filter { variables.isInFile($0) }
    pairs += inFile.map { ($0, "${\($0)}") }
    addEnvironment(pairs.map { ($0, .text(converted($1))) })
    let inherited = service.inherited.filter { !variables.isInFile($0) }
    if !inherited.isEmpty {
      let names = quoted(inherited)
      report("\(names): without a value; workers inherit the daemon's environment.")
    }
  }

  private mutating func environmentFiles() -> [String] {
    guard case .sequence(let items) = service.node("env_file") else {
      return service.texts("env_file").map { converted($0) }
    }
    return items.compactMap { item in
      let path = (item.scalar ?? item.mapping?["path"]?.scalar)?.string
      guard let path, item.mapping?["required"]?.scalar?.string != "false" else {
        if let path {
          report("Not taken over: `env_file` \(shortened(path)), which may be missing.")
        }
        return nil
      }
      return converted(path)
    }
  }

  private mutating func importStopSettings() {
    if let signal = service.text("stop_signal") {
      addStopSignal(signal, from: "`stop_signal: \(shortened(signal))`")
    }
    guard let time = service.text("stop_grace_period") else { return }
    if let seconds = ComposeQuantity.seconds(time), seconds > 0 {
      let milliseconds = Int((seconds * 1000).rounded())
      let isWhole = milliseconds % 1000 == 0
      add("stop_grace", .plain(isWhole ? "\(milliseconds / 1000)s" : "\(milliseconds)ms"))
    } else {
      report("Not taken over: `stop_grace_period: \(shortened(time))`.")
    }
  }

  /// Imports the number of replicas and the memory limit.
  private mutating func importLimits() {
    var count = service.number("scale", 1...1_000)
    var memory = service.text("mem_limit")
    if var deploy = service.mapping("deploy") {
      count = deploy.number("replicas", 1...1_000) ?? count
      if var resources = deploy.mapping("resources") {
        if var limits = resources.mapping("limits") {
          memory = limits.text("memory") ?? memory
          reportUnreadKeys(limits.leftovers, of: "deploy.resources.limits.")
        }
        reportUnreadKeys(resources.leftovers, of: "deploy.resources.")
      }
      reportUnreadKeys(deploy.leftovers, of: "deploy.")
    }
    if let count, count > 1 { add("replicas", .plain("\(count)")) }
    guard let memory else { return }
    if let size = ComposeQuantity.size(memory) {
      add("limits", .mapping([("memory", .plain(size))]))
    } else {
      report("Not taken over: the limit of memory \(shortened(memory)).")
    }
  }

  private mutating func importDependencies() {
    var pairs: [(String, Dependency.Condition)] = []
    switch service.node("depends_on") {
    case .sequence(let items):
      pairs = items.compactMap { $0.scalar.map { ($0.string, .started) } }
    case .mapping(let entries):
      pairs = entries.compactMap { key, value in
        guard let name = key.scalar?.string else { return nil }
        switch value.mapping?["condition"]?.scalar?.string {
        case "service_healthy": return (name, .ready)
        case "service_completed_successfully": return (name, .exitedOK)
        default: return (name, .started)
        }
      }
    default: return
    }
    for (name, _) in pairs where !names.contains(name) {
      report("It depends on `\(shortened(name))`, which isn't in the file: left out.")
    }
    pairs = pairs.filter { names.contains($0.0) }
    guard !pairs.isEmpty else { return }
    needs = pairs.map(\.0)
    let conditions = pairs.map { name, condition in
      (name, YAMLText.mapping([("condition", .plain(condition.rawValue))]))
    }
    add("depends_on", .mapping(conditions))
  }

  private mutating func importHealthChecks() {
    guard var check = service.mapping("healthcheck") else { return }
    let test = check.texts("test").map { converted($0, isCommand: true) }
    let arguments: [String]
    switch test.first {
    case "CMD": arguments = Array(test.dropFirst())
    case "CMD-SHELL": arguments = ["sh", "-c"] + test.dropFirst().prefix(1)
    case "NONE", nil: return
    default: arguments = ["sh", "-c", test.joined(separator: " ")]
    }
    let command = YAMLText.mapping([("command", .list(arguments.map { .text($0) }))])
    var pairs: [(String, YAMLText)] = [("exec", command)]
    if let retries = check.number("retries", 1...1_000) {
      pairs.append(("failureThreshold", .plain("\(retries)")))
    }
    for (theirs, ours) in [("interval", "periodSeconds"), ("timeout", "timeoutSeconds")] {
      guard let time = check.text(theirs) else { continue }
      if let seconds = ComposeQuantity.seconds(time), seconds > 0 {
        pairs.append((ours, .plain("\(max(Int(seconds.rounded()), 1))")))
      } else {
        report("Not taken over: `healthcheck.\(theirs): \(shortened(time))`.")
      }
    }
    add("readiness", .mapping(pairs))
    reportUnreadKeys(check.leftovers, of: "healthcheck.")
  }

  private mutating func importRestartRules() {
    guard let text = service.text("restart") else { return }
    var rules = RestartRules()
    switch text.split(separator: ":").first {
    case "always": rules.condition = .always
    case "unless-stopped": rules.condition = .unlessStopped
    case "on-failure": rules.condition = .onFailure
    case "no": return
    default: return report("Not taken over: `restart: \(shortened(text))`.")
    }
    add("restart", RestartKeys.text(rules))
  }
}
