import Policy

/// Imports one `[program:NAME]` of supervisord.
struct SupervisorProgram: WorkerImport {
  /// The data from which the worker is made.
  struct Source {
    var name: String
    var entries: [SectionedFile.Entry]
    /// The variables of `[supervisord]`.
    var environment: [(String, String)]
    var groups: [String]
    /// The directory of the file.
    var directory: String

    private func number(_ key: String) -> Int? {
      var keys = ForeignSection(entries)
      return keys.text(key).flatMap { Int($0) }
    }

    /// The priority. Programs with a lower one are started first.
    var priority: Int { number("priority") ?? 999 }

    /// The numbers of the copies, from `numprocs` and `numprocs_start`.
    var numbers: Range<Int> {
      let first = min(max(number("numprocs_start") ?? 0, 0), 100_000)
      return first..<(first + min(max(number("numprocs") ?? 1, 1), 1000))
    }
  }

  var imported: ImportedWorker
  private let source: Source
  private let groups: [String]
  private let expansion: SupervisorImport.Expansion

  init(_ source: Source, number: Int) {
    self.source = source
    let isOneOfMany = source.numbers.count > 1
    groups = (source.groups + (isOneOfMany ? [source.name] : [])).filter { NameRule.allows($0) }
    expansion = SupervisorImport.Expansion(values: [
      "program_name": source.name, "process_num": "\(number)", "numprocs": "1",
      "here": source.directory, "group_name": source.groups.first ?? source.name,
    ])
    imported = ImportedWorker(name: isOneOfMany ? "\(source.name)-\(number)" : source.name)
  }

  /// Returns nil if there is no command.
  mutating func worker() -> ImportedWorker? {
    var keys = ForeignSection(source.entries)
    keys.skip("process_name")
    for key in ["priority", "numprocs", "numprocs_start"] { _ = number(key, &keys) }
    guard let line = keys.text("command"), case .success(let command) = SplitCommand.split(line),
      !command.arguments.isEmpty
    else { return nil }
    add(
      "command", .list(command.arguments.map { Self.value(expansion.apply($0), isWord: true) }))
    if let path = keys.text("directory") { add("directory", Self.value(expansion.apply(path))) }
    importEnvironment(&keys)
    if !groups.isEmpty { add("groups", .list(groups.map { .text($0) })) }
    if let user = keys.text("user") { add("user", Self.value(expansion.apply(user))) }
    if let umask = keys.text("umask") {
      if umask.allSatisfy({ ("0"..."7").contains($0) }) {
        add("umask", .plain(umask))
      } else {
        reportLostKey("umask", umask)
      }
    }
    if let text = keys.text("autostart"), Self.truth(text) != true {
      imported.isStopped = true
      if Self.truth(text) == nil {
        report("`autostart=\(shortened(text))`: if it is true, remove `autostart: false`.")
      }
    }
    importRestartRules(&keys)
    importStopSettings(&keys)
    importOutput(&keys)
    keys.skip("stopasgroup", "killasgroup", "startsecs")
    reportUnreadKeys(keys.leftovers)
    imported.cannotRun(because: expansion.unknown)
    return imported
  }

  private mutating func reportLostKey(_ key: String, _ value: String) {
    report("Not taken over: `\(key)=\(shortened(value))`.")
  }

  /// Reads a number. If the value isn't one, the result is nil and there is a note.
  private mutating func number(_ key: String, _ keys: inout ForeignSection) -> Int? {
    guard let text = keys.text(key) else { return nil }
    let number = Int(text)
    if number == nil { reportLostKey(key, text) }
    return number
  }

  /// Reads a truth value. nil: it is neither, such as `%(ENV_RUN)s`.
  private static func truth(_ text: String) -> Bool? {
    switch text.lowercased() {
    case "true", "yes", "on", "1": true
    case "false", "no", "off", "0": false
    default: nil
    }
  }

  /// Converts a text. `${` and `$` are escaped, and the variables that `Expansion` has marked stay
  /// variables.
  private static func value(_ text: String, isWord: Bool = false) -> YAMLText {
    let plain =
      isWord ? WorkerRenderer.escapedWord(text) : text.replacing("$", with: "$$")
    return YAMLText.text(plain.replacing("\u{1}", with: "$"))
  }

  private mutating func importEnvironment(_ keys: inout ForeignSection) {
    var pairs = source.environment
    if let text = keys.text("environment") {
      guard let variables = SupervisorImport.variables(text, expansion) else {
        report("Not taken over: `environment`, which can't be read.")
        return
      }
      pairs += variables
    }
    addEnvironment(pairs.map { ($0, Self.value($1)) })
  }

  private mutating func importRestartRules(_ keys: inout ForeignSection) {
    var rules = RestartRules()
    let text = keys.text("autorestart") ?? "unexpected"
    switch Self.truth(text) {
    case true?: rules.condition = .always
    case false?: rules.condition = .never
    case nil:
      rules.condition = .onFailure
      if text.lowercased() != "unexpected" { reportLostKey("autorestart", text) }
    }
    let codes = keys.text("exitcodes")
    if rules.condition == .onFailure, let codes, codes != "0" {
      report("`exitcodes`: here only 0 is an orderly end.")
    }
    let maxRestarts = number("startretries", &keys)
    if rules.condition.restartsAfterExit, let maxRestarts, (1...1000).contains(maxRestarts) {
      rules.giveUp = .init(restarts: maxRestarts, window: .seconds(60))
    }
    add("restart", RestartKeys.text(rules))
  }

  private mutating func importStopSettings(_ keys: inout ForeignSection) {
    if let signal = keys.text("stopsignal")?.uppercased(), signal != "TERM" {
      addStopSignal(signal, from: "`stopsignal` \(shortened(signal))")
    }
    if let seconds = number("stopwaitsecs", &keys), seconds > 0 {
      add("stop_grace", .plain("\(seconds)s"))
    }
  }

  private mutating func importOutput(_ keys: inout ForeignSection) {
    let file = keys.text("stdout_logfile")
    let size = keys.text("stdout_logfile_maxbytes")
    let keep = keys.text("stdout_logfile_backups").flatMap { Int($0) } ?? 10
    let isRedirected = keys.truth("redirect_stderr") ?? false
    if let errors = keys.text("stderr_logfile"), errors != "AUTO", errors != "NONE", !isRedirected {
      report("`stderr_logfile`: both outputs are in one log here.")
    }
    keys.skip("stderr_logfile_maxbytes", "stderr_logfile_backups")
    guard let file, !["AUTO", "NONE", "syslog"].contains(file) else { return }
    // supervisord's devices can't be rotated.
    if file.hasPrefix("/dev/") {
      report("`stdout_logfile` \(shortened(file)): the daemon keeps a log of its own.")
      return
    }
    var pairs: [(String, YAMLText)] = [
      ("file", Self.value(expansion.apply(file)))
    ]
    let bytes = size ?? "50MB"
    let limit = Int(bytes) == nil ? bytes.uppercased() : "\(bytes)B"
    if ["KB", "MB", "GB"].contains(where: { limit.hasSuffix($0) }) || Int(bytes) ?? 0 > 0 {
      pairs.append(("max_size", .plain(limit)))
      pairs.append(("keep", .plain("\(min(max(keep, 0), 1000))")))
    } else if bytes != "0" {
      reportLostKey("stdout_logfile_maxbytes", bytes)
    }
    add("output", .mapping(pairs))
  }
}
