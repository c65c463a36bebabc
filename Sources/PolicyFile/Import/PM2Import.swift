import Policy
import YAML

/// Imports pm2's ecosystem file: `apps` in JSON, in YAML, or as the literals of an
/// `ecosystem.config.js`.
public enum PM2Import {
  /// Converts a file.
  public static func convert(text: String, file: String) -> ParseResult<ImportedConfiguration> {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    guard let root = root(text, file: file, sink: sink) else { return sink.result(nil) }
    var result = ImportedFile(source: FilePaths.name(of: file))
    var apps = [root]
    if case .sequence(let items) = root { apps = items.items }
    if case .mapping(let mapping) = root, mapping["script"] == nil {
      var top = ForeignMapping(mapping)
      switch top.node("apps") {
      case .sequence(let items): apps = items.items
      case .mapping(let app): apps = [.mapping(app)]
      default:
        sink.error(at: root.position, "not an ecosystem file of pm2: no list `apps`")
        return sink.result(nil)
      }
      result.notes += top.leftovers.map { "Not taken over: `\($0)`." }
    }
    var first: [String: Int] = [:]
    for node in apps {
      guard case .mapping(let mapping) = node else {
        sink.error(at: node.position, "an app must be an object of keys and values")
        continue
      }
      var app = PM2App(mapping)
      guard let worker = app.worker() else {
        sink.error(at: node.position, "this app has no `script`", suggestion: "give it one")
        continue
      }
      if let earlier = first[worker.name] {
        sink.error(
          at: node.position,
          "`\(shortened(worker.name))` is given twice; the first is in line \(earlier)")
        continue
      }
      first[worker.name] = node.position?.line ?? 0
      result.workers.append(worker)
    }
    return sink.result(result.rendered())
  }

  private static func root(
    _ text: String, file: String, sink: DiagnosticSink
  ) -> YAMLNode? {
    if file.hasSuffix(".yaml") || file.hasSuffix(".yml") {
      return Document.compose(sink)?.root?.withMergedKeys(sink)
    }
    do throws(LiteralText.Problem) {
      return try LiteralText.read(text)
    } catch {
      let isProgram = !file.hasSuffix(".json")
      sink.error(
        at: error.position, error.text,
        suggestion: isProgram
          ? "print its value with "
            + "`node -p 'JSON.stringify(require(\"./\(FilePaths.name(of: file))\"))'`, "
            + "and import that as a file of JSON" : nil)
      return nil
    }
  }
}

/// Imports one entry of `apps` (pm2's schema.json, version 6).
private struct PM2App: WorkerImport {
  private var app: ForeignMapping
  var imported = ImportedWorker(name: "")

  init(_ mapping: YAMLNode.Mapping) { app = ForeignMapping(mapping) }

  /// Returns nil if there is no script.
  mutating func worker() -> ImportedWorker? {
    guard let script = first("script", "exec") else { return nil }
    name(script)
    command(script)
    importEnvironment()
    importInstances()
    importRestartRules()
    importStopSettings()
    importOutput()
    importOtherKeys()
    return imported
  }

  /// Returns the value of the first of these names that has one.
  private mutating func first(_ names: String...) -> String? {
    names.compactMap { app.text($0) }.first
  }

  /// Reads a list of words, or a line with quotes.
  private mutating func readArguments(_ names: String...) -> [String] {
    for name in names {
      if case .sequence(let items) = app.node(name) {
        return items.compactMap { $0.scalar?.string }
      }
      guard let line = app.text(name) else { continue }
      if let arguments = ComposeTokenizer.split(line) { return arguments }
      report("`\(name)` has a quote without its end: check the command.")
      return line.split(separator: " ").map(String.init)
    }
    return []
  }

  private mutating func name(_ script: String) {
    let file = FilePaths.name(of: script)
    let text = first("name") ?? String(file.prefix { $0 != "." && $0 != " " })
    let start = NameRule.fitted(text)
    imported.name = start.isEmpty ? "app" : start
    if imported.name != text { report("Its name was `\(shortened(text))`.") }
  }

  private static let interpreters = [
    "js": "node", "cjs": "node", "mjs": "node", "py": "python3", "rb": "ruby", "sh": "bash",
    "php": "php", "pl": "perl", "ts": "bun", "tsx": "bun", "coffee": "coffee",
  ]

  private mutating func command(_ script: String) {
    let options = readArguments("node_args", "interpreter_args", "interpreterArgs")
    let arguments = readArguments("args")
    let ending = FilePaths.name(of: script).split(separator: ".").dropFirst().last.map(String.init)
    let named = first("interpreter", "exec_interpreter")
    if named == nil || named == "none", script.contains(" ") {
      // pm2 gives such a line to a shell, whatever its ending is, and no arguments with it.
      if !options.isEmpty || !arguments.isEmpty {
        report("pm2 ignores the arguments beside a `script` with a blank.")
      }
      return add("command", ShellLine.command(script, shell: ["sh", "-c"]))
    }
    let interpreter = named ?? ending.flatMap { Self.interpreters[$0] }
    if let interpreter, interpreter != "none" {
      add("command", WorkerRenderer.command([interpreter] + options + [script] + arguments))
    } else {
      add("command", WorkerRenderer.command([script] + arguments))
    }
  }

  private mutating func importEnvironment() {
    if let directory = first("cwd") { add("directory", WorkerRenderer.escaped(directory)) }
    addEnvironment(app.variables("env").map { ($0, WorkerRenderer.escaped($1)) })
    if let user = first("user", "uid") { add("user", .text(user)) }
    if let group = first("gid") { add("group", .text(group)) }
    addGroup(of: first("namespace"))
  }

  private mutating func importInstances() {
    let mode = first("exec_mode") ?? "fork"
    let count = first("instances")
    let number = count.flatMap { Int($0) } ?? (count == nil ? 1 : 0)
    if (2...1_000).contains(number) { add("replicas", .plain("\(number)")) }
    if let count, number < 1 {
      report("`instances: \(shortened(count))`: as many as there are processors; here it is one.")
    }
    if mode.hasPrefix("cluster"), count != nil, number != 1 {
      report("`cluster`: pm2's instances share one port, and here each opens its own.")
    }
  }

  /// Reads milliseconds, or a text such as `10s`, as whole seconds.
  private static func seconds(_ text: String) -> Int? {
    if let milliseconds = Double(text), milliseconds >= 0 {
      return Int(min(milliseconds / 1000, 86_400).rounded(.up))
    }
    return ComposeQuantity.seconds(text).map { Int(min($0, 86_400).rounded(.up)) }
  }

  private mutating func importRestartRules() {
    app.skip("min_uptime")
    let delay = first("restart_delay").flatMap(Self.seconds)
    let growing = first("exp_backoff_restart_delay").flatMap(Self.seconds)
    let maxRestarts = app.number("max_restarts", 1...1_000)
    if first("autorestart") == "false" { return }
    // pm2 starts a program again after any end.
    var rules = RestartRules(.always)
    if let growing, growing > 0 {
      rules.backoff = Backoff(
        initial: .seconds(growing), max: .seconds(max(growing, 15)), factor: 1.5)
    } else if let delay, delay > 0 {
      rules.backoff = Backoff(initial: .seconds(delay), max: .seconds(delay), factor: 1)
    }
    if let maxRestarts {
      rules.giveUp = .init(restarts: maxRestarts, window: .seconds(86_400))
      report("`max_restarts` are counted within a day here.")
    }
    add("restart", RestartKeys.text(rules))
  }

  private mutating func importStopSettings() {
    // SIGINT is pm2's default. `PM2_KILL_SIGNAL` changes it.
    add("stop_signal", .plain("INT"))
    if let seconds = first("kill_timeout").flatMap(Self.seconds), seconds > 0 {
      add("stop_grace", .plain("\(seconds)s"))
    }
    guard let text = first("max_memory_restart") else { return }
    if let size = UnitLimit.text(text, .bytes) {
      add("limits", .mapping([("footprint", .plain(size))]))
    } else {
      report("Not taken over: `max_memory_restart: \(shortened(text))`.")
    }
  }

  private mutating func importOutput() {
    let out = first("out_file", "out", "output", "out_log")
    let errors = first("error_file", "error", "err", "err_file", "err_log")
    let file = first("log_file", "log") ?? out
    if let errors, errors != file {
      report("`\(shortened(errors))`: both outputs are in one log here.")
    }
    if let file, file != "/dev/null", file != "true", file != "false", file != "NULL" {
      add("output", .mapping([("file", WorkerRenderer.escaped(file))]))
    }
  }

  private mutating func importOtherKeys() {
    // These keys concern pm2 itself and have no meaning here.
    app.skip(
      "source_map_support", "disable_source_map_support", "vizion", "automation", "pmx", "force",
      "time", "merge_logs", "combine_logs", "log_type", "listen_timeout", "treekill", "trace",
      "disable_trace", "instance_var", "disable_logs")
    if app.truth("wait_ready") {
      report("`wait_ready`: pm2 waits for `process.send('ready')`; write a `readiness` instead.")
    }
    if first("autostart") == "false" { imported.isStopped = true }
    if first("watch") == "false" { app.skip("ignore_watch", "watch_delay", "watch_options") }
    if let times = first("cron_restart", "cron"), times != "0", times != "false" {
      report("`cron_restart: \(shortened(times))`: run `dormouse restart` from cron.")
    }
    for key in app.leftovers {
      let isOfMode = key.hasPrefix("env_")
      report(
        isOfMode
          ? "Not taken over: `\(key)`, which pm2 adds with `--env \(key.dropFirst(4))`."
          : "Not taken over: `\(key)`.")
    }
  }
}
