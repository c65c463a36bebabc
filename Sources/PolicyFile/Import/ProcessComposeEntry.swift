import Policy
import YAML

/// Imports one entry of `processes:`.
struct ProcessComposeEntry: WorkerImport {
  /// The settings for all processes of the file.
  struct Shared {
    var shell: [String]
    var environment: [(String, String)]
    var variables: ForeignVariables
  }

  private var process: ForeignMapping
  var imported: ImportedWorker
  private let shared: Shared
  /// The names of the workers that each entry of the file becomes.
  private let names: [String: [String]]
  private var replicaVariables: [(String, String)] = []

  init(
    name: String, mapping: YAMLNode.Mapping, shared: Shared, names: [String: [String]]
  ) {
    process = ForeignMapping(mapping)
    imported = ImportedWorker(name: name)
    (self.shared, self.names) = (shared, names)
  }

  /// Makes this worker one of several copies, and adds its number.
  mutating func add(replica number: Int) {
    replicaVariables.append(("PC_REPLICA_NUM", "\(number)"))
  }

  /// Returns `nil` if there is no command.
  mutating func worker() -> ImportedWorker? {
    imported.description = process.text("description")
    guard command() else { return nil }
    importEnvironment()
    importDependencies()
    importHealthChecks()
    importRestartRules()
    importStopSettings()
    importOutput()
    if process.truth("disabled") { imported.isStopped = true }
    addGroup(of: process.text("namespace"))
    process.skip("replicas", "vars")
    if process.mapping("schedule") != nil {
      report("`schedule` isn't taken over: start it from cron, with `dormouse start`.")
      imported.isStopped = true
    }
    if process.truth("is_daemon") {
      report("`is_daemon`: the program must stay in the foreground; use its option for that.")
    }
    reportUnreadKeys(process.leftovers)
    return imported
  }

  private mutating func command() -> Bool {
    let entrypoint = process.texts("entrypoint")
    if let line = process.text("command") {
      add("command", self.line(line))
      if !entrypoint.isEmpty { report("Not taken over: `entrypoint`, beside a `command`.") }
      return true
    }
    guard !entrypoint.isEmpty else { return false }
    add("command", WorkerRenderer.command(entrypoint.map(Self.unescaped)))
    return true
  }

  /// Converts a line. Its variables are left to the shell, which has all variables that
  /// process-compose would have replaced.
  private func line(_ text: String) -> YAMLText {
    var text = Self.unescaped(text)
    while text.last?.isNewline == true { text.removeLast() }
    return ShellLine.command(text, shell: shared.shell)
  }

  /// Replaces `$$`, which is process-compose's way to write `$`.
  private static func unescaped(_ text: String) -> String { text.replacing("$$", with: "$") }

  /// Converts a value in which process-compose expands `$VAR` and `${VAR}`. Missing variables are
  /// empty.
  private func value(_ text: String) -> YAMLText { .text(shared.variables.converted(text)) }

  private mutating func importEnvironment() {
    if let directory = process.text("working_dir") { add("directory", value(directory)) }
    // The variables in commands are the shell's, which has those of `.env`, too.
    let files =
      (shared.variables.hasFile ? [".env"] : []) + process.texts("env_file")
      + process.texts("dotenv")
    if !files.isEmpty { add("env_file", .list(files.map(value))) }
    let variables = shared.environment + process.variables("environment") + replicaVariables
    if !process.inherited.isEmpty {
      let names = quoted(process.inherited)
      report("\(names): without a value; workers inherit the daemon's environment.")
    }
    addEnvironment(variables.map { ($0, value($1)) })
  }

  private mutating func importDependencies() {
    guard let needs = process.mapping("depends_on") else { return }
    var pairs: [(String, YAMLText)] = []
    for (name, node) in needs.pairs {
      guard let targets = names[name] else {
        report("It depends on `\(shortened(name))`, which isn't in the file: left out.")
        continue
      }
      var condition: String?
      if case .mapping(let details) = node {
        condition = details["condition"]?.scalar?.string
      } else {
        condition = node.scalar?.string
      }
      let requiredState: Dependency.Condition
      switch condition {
      case "process_completed": requiredState = .exited
      case "process_completed_successfully": requiredState = .exitedOK
      case "process_healthy", "process_log_ready": requiredState = .ready
      case "process_started", nil, "": requiredState = .started
      case let other?:
        report("The condition `\(shortened(other))` on `\(name)` is unknown: `started` is used.")
        requiredState = .started
      }
      for target in targets {
        pairs.append((target, .mapping([("condition", .plain(requiredState.rawValue))])))
      }
    }
    if !pairs.isEmpty { add("depends_on", .mapping(pairs)) }
  }

  private mutating func importHealthChecks() {
    if let line = process.text("ready_log_line") {
      // A line without any special character of a regular expression is searched for as plain text.
      let isText = !line.contains { #".^$*+?()[]{}|\"#.contains($0) }
      if line.contains("\\") {
        report("`ready_log_line` is an extended regular expression of POSIX here: check its `\\`.")
      }
      add(
        "readiness",
        .mapping([(isText ? "log_line" : "log_pattern", WorkerRenderer.escaped(line))]))
    }
    if let probe = probe("readiness_probe", maximum: 1_000) {
      if imported.keys.contains(where: { $0.0 == "readiness" }) {
        report("Not taken over: `readiness_probe`, beside `ready_log_line`.")
      } else {
        add("readiness", .mapping(probe))
      }
    }
    if let probe = probe("liveness_probe", maximum: 1) { add("liveness", .mapping(probe)) }
  }

  private mutating func probe(_ key: String, maximum: Int) -> [(String, YAMLText)]? {
    guard var probe = process.mapping(key) else { return nil }
    var pairs: [(String, YAMLText)] = []
    if var exec = probe.mapping("exec"), let command = exec.text("command") {
      pairs.append(("exec", .mapping([("command", line(command))])))
      reportUnreadKeys(exec.leftovers, of: "\(key).exec.")
    } else if var request = probe.mapping("http_get") {
      guard let http = http(&request, key) else { return nil }
      pairs.append(("httpGet", .mapping(http)))
    } else {
      report("Not taken over: `\(key)`, of an unknown kind.")
      return nil
    }
    let fields = [
      ("initial_delay_seconds", "initialDelaySeconds", 0...86_400),
      ("period_seconds", "periodSeconds", 1...86_400),
      ("timeout_seconds", "timeoutSeconds", 1...86_400),
      ("success_threshold", "successThreshold", 1...maximum),
      ("failure_threshold", "failureThreshold", 1...1_000),
    ]
    for (theirs, ours, range) in fields {
      if let value = probe.number(theirs, range) { pairs.append((ours, .plain("\(value)"))) }
    }
    reportUnreadKeys(probe.leftovers, of: "\(key).")
    return pairs
  }

  private mutating func http(
    _ request: inout ForeignMapping, _ key: String
  ) -> [(String, YAMLText)]? {
    guard let port = request.number("port", 1...65_535) else {
      report("Not taken over: `\(key)`, whose port isn't a number.")
      return nil
    }
    if let scheme = request.text("scheme"), scheme.lowercased() != "http" {
      report("Not taken over: `\(key)` by \(shortened(scheme)): the daemon has no TLS.")
      return nil
    }
    var pairs: [(String, YAMLText)] = [("port", .plain("\(port)"))]
    if let path = request.text("path"), path != "/" {
      pairs.append(("path", value(path.hasPrefix("/") ? path : "/" + path)))
    }
    if let host = request.text("host"), host != "127.0.0.1", host != "localhost" {
      pairs.append(("host", value(host)))
    }
    reportUnreadKeys(request.leftovers, of: "\(key).http_get.")
    return pairs
  }

  private mutating func importRestartRules() {
    guard var rules = process.mapping("availability") else { return }
    var result = RestartRules()
    switch rules.text("restart") {
    case "always": result.condition = .always
    case "on_failure": result.condition = .onFailure
    case "exit_on_failure":
      report("`exit_on_failure`: the other workers keep running when this one fails.")
    default: break
    }
    if result.condition.restartsAfterExit {
      let seconds = rules.number("backoff_seconds", 0...86_400) ?? 1
      let wait = Duration.seconds(max(seconds, 1))
      result.backoff = Backoff(initial: wait, max: wait, factor: 1)
      let maximum = rules.number("max_restarts", 1...1_000)
      result.giveUp = maximum.map { RestartRules.GiveUp(restarts: $0, window: .seconds(86_400)) }
      if maximum != nil { report("`max_restarts` are counted within a day here.") }
      add("restart", RestartKeys.text(result))
    }
    rules.skip("backoff_seconds", "max_restarts")
    reportUnreadKeys(rules.leftovers, of: "availability.")
  }

  private mutating func importStopSettings() {
    guard var rules = process.mapping("shutdown") else { return }
    let command = rules.text("command")
    if let command { add("stop_command", line(command)) }
    if rules.truth("parent_only") {
      report("Not taken over: `shutdown.parent_only`; all of its processes get the stop signal.")
    }
    if let number = rules.number("signal", 1...31), number != 15 {
      let name = Signals.named.first { $0.number == Int32(number) }?.name
      addStopSignal(name ?? "", from: "`shutdown.signal: \(number)`, which ends no process")
    }
    if let seconds = rules.number("timeout_seconds", 0...86_400) {
      if seconds > 0 {
        add("stop_grace", .plain("\(seconds)s"))
      } else if command == nil {
        // 0 is no limit, or 10 s for a command.
        add("stop_grace", .plain("1h"))
        report("`shutdown.timeout_seconds: 0` waits without limit, and this daemon an hour.")
      }
    }
    reportUnreadKeys(rules.leftovers, of: "shutdown.")
  }

  private mutating func importOutput() {
    var pairs: [(String, YAMLText)] = []
    if let file = process.text("log_location") { pairs.append(("file", value(file))) }
    if var logs = process.mapping("log_configuration") {
      if var rotation = logs.mapping("rotation") {
        if let size = rotation.number("max_size_mb", 1...1_000_000) {
          pairs.append(("max_size", .plain("\(size)MB")))
          if let keep = rotation.number("max_backups", 0...1_000) {
            pairs.append(("keep", .plain("\(keep)")))
          }
        }
        rotation.skip("max_backups")
        reportUnreadKeys(rotation.leftovers, of: "log_configuration.rotation.")
      }
      reportUnreadKeys(logs.leftovers, of: "log_configuration.")
    }
    if !pairs.isEmpty { add("output", .mapping(pairs)) }
  }
}
