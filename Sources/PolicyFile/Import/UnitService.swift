import Policy

/// Imports the `[Service]` section of a unit (systemd.service(5), systemd.exec(5),
/// systemd.kill(5)).
struct UnitService: WorkerImport {
  private let unit: UnitName
  private var service: ForeignSection
  private var head: ForeignSection
  private let pathExists: (String) -> Bool
  private let variables: ((String) -> [String: String]?)?
  var imported: ImportedWorker
  private var unknown: [String] = []

  /// - Parameter variables: returns those of a file, or nil if it can't be read. nil: files of
  ///   variables override none, because the unit starts a container.
  init(
    unit: UnitName, service: ForeignSection, head: ForeignSection,
    pathExists: @escaping (String) -> Bool, variables: ((String) -> [String: String]?)?
  ) {
    (self.unit, self.service, self.head, self.pathExists) = (unit, service, head, pathExists)
    self.variables = variables
    imported = ImportedWorker(name: unit.worker)
  }

  /// Returns nil if there is no command that can be read.
  mutating func worker() -> ImportedWorker? {
    imported.description = head.text("Description").map { expanded($0) }
    let starts = service.all("ExecStart")
    guard starts.count == 1, let start = starts.first, command(start) else { return nil }
    importEnvironment()
    importServiceType()
    importRestartRules()
    importStopSettings()
    importLimits()
    importOutput()
    importDirectories()
    importOtherKeys()
    imported.cannotRun(because: unknown)
    return imported
  }

  private mutating func stop(because text: String) {
    report(text + ", then remove `autostart: false`.")
    imported.isStopped = true
  }

  private mutating func expanded(_ text: String) -> String { unit.expand(text, &unknown) }

  private mutating func command(_ line: String) -> Bool {
    guard let command = UnitCommand(line, expand: { expanded($0) }) else { return false }
    add("command", command.text)
    for text in command.notes { report(text) }
    return true
  }

  // MARK: its surroundings

  private mutating func importEnvironment() {
    if let text = service.text("WorkingDirectory") {
      let path = expanded(text.after("-") ?? text)
      add("directory", path == "~" ? .text("${HOME}") : WorkerRenderer.escaped(path))
      if path == "~", service.text("User") != nil {
        stop(because: "`WorkingDirectory=~`: write the home directory of its `user`")
      }
    }
    var files: [String] = []
    for text in service.all("EnvironmentFile") {
      let path = expanded(text.after("-") ?? text)
      if text.hasPrefix("-"), !pathExists(path) {
        report("`EnvironmentFile`: \(shortened(path)) isn't there, and may be missing.")
      } else {
        files.append(path)
      }
    }
    let paths = files.map { WorkerRenderer.escaped($0) }
    if !paths.isEmpty { add("env_file", paths.count == 1 ? paths[0] : .list(paths)) }
    var pairs: [(String, YAMLText)] = []
    for line in service.all("Environment") {
      for word in UnitTokenizer.split(line) ?? [] {
        guard let equals = word.firstIndex(of: "=") else { continue }
        let value = expanded(String(word[equals...].dropFirst()))
        pairs.append((String(word[..<equals]), WorkerRenderer.escaped(value)))
      }
    }
    if let variables {
      let defaults = UnitDefaults(pairs, below: files, read: variables)
      pairs = defaults.pairs
      for text in defaults.notes { report(text) }
    }
    addEnvironment(pairs)
    for (key, ours) in [("User", "user"), ("Group", "group")] {
      if let text = service.text(key) { add(ours, .text(expanded(text))) }
    }
    if let umask = service.text("UMask"), umask.allSatisfy({ ("0"..."7").contains($0) }) {
      add("umask", .plain(umask))
    }
  }

  private mutating func importServiceType() {
    switch service.text("Type") ?? "simple" {
    case "notify": add("readiness", .mapping([("notify", .plain("true"))]))
    case "notify-reload":
      add("readiness", .mapping([("notify", .plain("true"))]))
      add(
        "reload_signal", .plain(service.text("ReloadSignal").map { $0.after("SIG") ?? $0 } ?? "HUP")
      )
    case "forking":
      stop(
        because: "`Type=forking`: the program must stay in the foreground; use its option for that")
    case "dbus": report("`Type=dbus`: it counts as ready at once.")
    case "oneshot": report("`Type=oneshot`: a job that ends; it isn't started again.")
    default: break
    }
    service.skip("PIDFile", "BusName", "NotifyAccess", "GuessMainPID", "RemainAfterExit")
    if let seconds = UnitTime.seconds(service.text("WatchdogSec")), seconds >= 1 {
      add("watchdog", .plain("\(seconds)s"))
    }
    if let count = service.text("FileDescriptorStoreMax").flatMap({ Int($0) }), count > 0 {
      add("fdstore", .plain("\(min(count, 512))"))
    }
  }

  private mutating func importRestartRules() {
    var rules = RestartRules()
    let text = service.text("Restart") ?? "no"
    switch text {
    case "always": rules.condition = .always
    case "on-failure": rules.condition = .onFailure
    case "on-abnormal", "on-abort", "on-watchdog":
      rules.condition = .onFailure
      report("`Restart=\(text)`: it is started again after any failure.")
    case "on-success": report("Not taken over: `Restart=on-success`.")
    default: break
    }
    let wait = UnitTime.seconds(service.text("RestartSec"))
    let burst = (head.text("StartLimitBurst") ?? service.text("StartLimitBurst")).flatMap {
      Int($0)
    }
    let window = UnitTime.seconds(
      head.text("StartLimitIntervalSec") ?? service.text("StartLimitInterval"))
    guard rules.condition.restartsAfterExit else { return }
    if let wait {
      let time = Duration.seconds(max(wait, 1))
      rules.backoff = Backoff(initial: time, max: time, factor: 1)
    }
    if window == 0 {
      rules.giveUp = nil
    } else if let burst, (1...1000).contains(burst) {
      rules.giveUp = .init(restarts: burst, window: .seconds(max(window ?? 10, 1)))
    }
    add("restart", RestartKeys.text(rules))
  }

  private mutating func importStopSettings() {
    let reload = service.all("ExecReload")
    for line in reload {
      guard let signal = UnitCommand.signal(ofKill: line) else {
        report("Not taken over: `ExecReload=\(shortened(line))`.")
        continue
      }
      if !imported.keys.contains(where: { $0.0 == "reload_signal" }) {
        add("reload_signal", .plain(signal))
      }
    }
    var signal = service.text("KillSignal").map { $0.after("SIG") ?? $0 }
    var commands: [String] = []
    for line in service.all("ExecStop") {
      if let killSignal = UnitCommand.signal(ofKill: line) {
        signal = killSignal
      } else {
        commands.append(line)
      }
    }
    if let command = UnitCommand(stop: commands, expand: { expanded($0) }) {
      add("stop_command", command.text)
    } else {
      for line in commands { report("Not taken over: `ExecStop=\(shortened(line))`.") }
    }
    if let signal, signal != "TERM" {
      addStopSignal(signal, from: "`KillSignal=\(shortened(signal))`")
    }
    // systemd's default is longer than the policies', and the service may need it to save data.
    let usual = variables == nil ? nil : "90s"
    let grace = service.text("TimeoutStopSec") ?? service.text("TimeoutSec") ?? usual
    let seconds = UnitTime.seconds(grace)
    if let seconds, seconds > 0 {
      add("stop_grace", .plain("\(seconds)s"))
    } else if seconds == 0 || grace == "infinity" {
      add("stop_grace", .plain("1h"))
      report("`TimeoutStopSec`: systemd waits without limit for its end, and this daemon an hour.")
    } else if let grace {
      report("Not taken over: `TimeoutStopSec=\(shortened(grace))`.")
    }
  }

  // MARK: limits, logs, other keys

  private mutating func importLimits() {
    var pairs: [(String, YAMLText)] = []
    for resource in ResourceLimits.Resource.allCases {
      let key = "Limit\(resource.rawValue.uppercased())"
      guard let text = service.text(key) else { continue }
      let parts = text.split(separator: ":").map { UnitLimit.text(String($0), resource.unit) }
      if let soft = parts.first ?? nil, let hard = parts.last ?? nil {
        pairs.append(
          (
            resource.rawValue,
            soft == hard
              ? .plain(soft) : .mapping([("soft", .plain(soft)), ("hard", .plain(hard))])
          ))
      } else {
        report("Not taken over: `\(key)=\(shortened(text))`.")
      }
    }
    if let text = service.text("MemoryMax"), text != "infinity" {
      if let size = UnitLimit.text(text, .bytes) {
        pairs.append(("memory", .plain(size)))
      } else {
        report("Not taken over: `MemoryMax=\(shortened(text))`.")
      }
    }
    if let score = service.text("OOMScoreAdjust").flatMap({ Int($0) }),
      (-1000...1000).contains(score)
    {
      pairs.append(("oom_score_adj", .plain("\(score)")))
    }
    if !pairs.isEmpty { add("limits", .mapping(pairs)) }
  }

  private mutating func importOutput() {
    let text = service.text("StandardOutput") ?? "journal"
    if let errors = service.text("StandardError"), errors != text, errors != "inherit" {
      report("`StandardError=\(shortened(errors))`: both outputs are in one log here.")
    }
    guard let path = text.after("append:") ?? text.after("file:") ?? text.after("truncate:") else {
      return
    }
    add("output", .mapping([("file", WorkerRenderer.escaped(expanded(path)))]))
  }

  private mutating func importDirectories() {
    let roots = [
      ("RuntimeDirectory", "%t"), ("StateDirectory", "%S"), ("CacheDirectory", "%C"),
      ("LogsDirectory", "%L"), ("ConfigurationDirectory", "%E"),
    ]
    var missing: [String] = []
    for (key, root) in roots {
      for text in service.all(key) {
        for name in text.split(whereSeparator: \.isWhitespace) {
          // The root of a user's unit stays a specifier, because it differs from user to user.
          let path =
            "\(unit.value(of: root) ?? root)/\(expanded(String(name.prefix { $0 != ":" })))"
          if key == "RuntimeDirectory" || !pathExists(path) { missing.append(path) }
        }
      }
      service.skip("\(key)Mode")
    }
    service.skip("RuntimeDirectoryPreserve")
    if !missing.isEmpty {
      let paths = quoted(missing)
      stop(because: "systemd makes \(paths) for it: let tmpfiles.d(5) make that")
    }
    if service.truth("DynamicUser") == true {
      stop(because: "`DynamicUser`: give it a `user`")
    }
  }

  private mutating func importOtherKeys() {
    let sockets = (service.all("Sockets") + head.all("Requires"))
      .flatMap { $0.split(whereSeparator: \.isWhitespace) }.filter { $0.hasSuffix(".socket") }
    if !sockets.isEmpty {
      let names = quoted(sockets)
      stop(because: "systemd opens its sockets (\(names)): write them as `listen`")
    }
    for key in ["Requires", "BindsTo", "Wants"] {
      let units = head.all(key).flatMap { $0.split(whereSeparator: \.isWhitespace) }
        .filter { $0.hasSuffix(".service") || !$0.contains(".") }
      if !units.isEmpty {
        report("It needs \(quoted(units)).")
      }
    }
    if head.leftovers.contains(where: { $0.hasPrefix("Condition") || $0.hasPrefix("Assert") }) {
      report("Not taken over: the conditions for its start.")
    }
    service.skip(
      "SyslogIdentifier", "SyslogFacility", "StandardInput", "SendSIGKILL", "Slice", "OOMPolicy")
    switch service.text("KillMode") ?? "control-group" {
    case "control-group": break
    case "mixed": report("`KillMode=mixed`: all of its processes get the stop signal here.")
    case let mode:
      report("`KillMode=\(shortened(mode))`: all of its processes are ended with it here.")
    }
    let remainder = service.leftovers
    let sandbox = remainder.filter(UnitSandbox.includes)
    if !sandbox.isEmpty {
      report("Not taken over: its sandbox (\(sandbox.joined(separator: ", "))).")
    }
    reportUnreadKeys(remainder.filter { !UnitSandbox.includes($0) })
  }
}
