import Policy

extension ConfigurationFile {
  /// A worker's entry as YAML, keys with their defaults left out. Reading it gives the worker back,
  /// but for its policy.
  public static func render(_ worker: WorkerConfiguration) -> String {
    let lines = WorkerRenderer(worker: worker).keys().flatMap { key, value in
      YAMLText.lines(key, value, indent: "    ")
    }
    return (["  \(YAMLText.scalar(worker.name)):"] + lines).joined(separator: "\n") + "\n"
  }
}

struct WorkerRenderer {
  var worker: WorkerConfiguration

  /// In the order of the documentation.
  func keys() -> [(String, YAMLText)] {
    program() + health() + ending() + surroundings()
  }

  private func program() -> [(String, YAMLText)] {
    var keys: [(String, YAMLText)] = [("command", Self.command(worker.command))]
    if worker.directory != "." { keys.append(("directory", Self.escaped(worker.directory))) }
    let variables = worker.environment.sorted { $0.key < $1.key }
    if !variables.isEmpty {
      let pairs = variables.map { ($0.key, Self.escaped($0.value)) }
      keys.append(("environment", .mapping(pairs)))
    }
    if !worker.environmentFiles.isEmpty {
      keys.append(("env_file", .list(worker.environmentFiles.map(Self.escaped))))
    }
    if let user = worker.user { keys.append(("user", .text(user))) }
    if let group = worker.group { keys.append(("group", .text(group))) }
    if let umask = worker.umask {
      let digits = String(umask, radix: 8)
      keys.append(("umask", .plain(String(repeating: "0", count: 3 - digits.count) + digits)))
    }
    if worker.limits != ResourceLimits() { keys.append(("limits", limits())) }
    if !worker.groups.isEmpty { keys.append(("groups", .list(worker.groups.map { .text($0) }))) }
    if worker.importance != 0 { keys.append(("importance", .plain("\(worker.importance)"))) }
    if !worker.autostart { keys.append(("autostart", .plain("false"))) }
    if !worker.dependsOn.isEmpty {
      let pairs = worker.dependsOn.map {
        ($0.worker, YAMLText.mapping([("condition", .plain($0.condition.rawValue))]))
      }
      keys.append(("depends_on", .mapping(pairs)))
    }
    return keys
  }

  private func limits() -> YAMLText {
    var pairs: [(String, YAMLText)] = []
    for resource in ResourceLimits.Resource.allCases {
      guard let limit = worker.limits.resources[resource] else { continue }
      let soft = Self.amount(limit.soft, resource.unit)
      let hard = Self.amount(limit.hard, resource.unit)
      pairs.append(
        (
          resource.rawValue,
          limit.soft == limit.hard ? soft : .mapping([("soft", soft), ("hard", hard)])
        ))
    }
    if let memory = worker.limits.memory { pairs.append(("memory", .plain(memory.policyText))) }
    if let footprint = worker.limits.footprint {
      pairs.append(("footprint", Self.footprint(footprint)))
    }
    if let score = worker.limits.oomScore { pairs.append(("oom_score_adj", .plain("\(score)"))) }
    return .mapping(pairs)
  }

  /// One value is short for `restart`.
  private static func footprint(_ limits: FootprintLimits) -> YAMLText {
    if let restart = limits.restart, limits == FootprintLimits(restart: restart) {
      return .plain(restart.policyText)
    }
    var pairs = FootprintLimits.Step.allCases.compactMap { step in
      limits[step].map { (step.rawValue, YAMLText.plain($0.policyText)) }
    }
    if limits.sustainedFor != FootprintLimits.defaultSustainedFor {
      pairs.append(("sustained_for", .plain(limits.sustainedFor.policyText)))
    }
    return .mapping(pairs)
  }

  private static func amount(
    _ amount: UInt64?, _ unit: ResourceLimits.Resource.Unit
  ) -> YAMLText {
    guard let amount else { return .plain("unlimited") }
    switch unit {
    case .count: return .plain("\(amount)")
    case .bytes: return .plain(ByteCount(Int64(clamping: amount)).policyText)
    case .seconds: return .plain("\(amount)s")
    }
  }

  private func health() -> [(String, YAMLText)] {
    var keys: [(String, YAMLText)] = []
    switch worker.shed {
    case .signal(let number): keys.append(("shed", .mapping([("signal", Self.signal(number))])))
    case .command(let words): keys.append(("shed", .mapping([("command", Self.command(words))])))
    case .http(let request): keys.append(("shed", .mapping([("http", Self.request(request))])))
    case .notify: keys.append(("shed", .mapping([("notify", .plain("true"))])))
    case nil: break
    }
    if let readiness = worker.readiness {
      keys.append(("readiness", .mapping(Self.readiness(readiness))))
    }
    if worker.notify { keys.append(("notify", .plain("true"))) }
    if worker.fdstore > 0 { keys.append(("fdstore", .plain("\(worker.fdstore)"))) }
    if let watchdog = worker.watchdog { keys.append(("watchdog", .plain(watchdog.policyText))) }
    if let liveness = worker.liveness {
      keys.append(("liveness", .mapping(Self.probe(liveness))))
    }
    return keys
  }

  private static func readiness(
    _ readiness: WorkerConfiguration.Readiness
  ) -> [(String, YAMLText)] {
    switch readiness {
    case .notify: [("notify", .plain("true"))]
    case .notificationDescriptor(let number): [("notification_fd", .plain("\(number)"))]
    case .tcp(let port): [("tcp", .plain("\(port)"))]
    case .logLine(let text): [("log_line", escaped(text))]
    case .logPattern(let pattern): [("log_pattern", escaped(pattern))]
    case .probe(let probe): self.probe(probe)
    }
  }

  /// Fields that have Kubernetes' defaults are left out.
  static func probe(_ probe: Probe) -> [(String, YAMLText)] {
    var pairs: [(String, YAMLText)]
    switch probe.action {
    case .exec(let words):
      pairs = [("exec", .mapping([("command", command(words))]))]
    case .http(let request): pairs = [("httpGet", self.request(request))]
    case .tcp(let host, let port):
      let place: [(String, YAMLText)] = [("port", .plain("\(port)"))]
      let other = host == "127.0.0.1" ? [] : [("host", escaped(host))]
      pairs = [("tcpSocket", .mapping(place + other))]
    }
    let standard = Probe(probe.action)
    func add(_ key: String, _ value: Int64, usual: Int64) {
      if value != usual { pairs.append((key, .plain("\(value)"))) }
    }
    add(
      "initialDelaySeconds", probe.initialDelay.components.seconds,
      usual: standard.initialDelay.components.seconds)
    add("periodSeconds", probe.period.components.seconds, usual: standard.period.components.seconds)
    add(
      "timeoutSeconds", probe.timeout.components.seconds, usual: standard.timeout.components.seconds
    )
    add(
      "successThreshold", Int64(probe.successThreshold), usual: Int64(standard.successThreshold))
    add(
      "failureThreshold", Int64(probe.failureThreshold), usual: Int64(standard.failureThreshold))
    return pairs
  }

  private static func request(_ request: Probe.HTTPRequest) -> YAMLText {
    var pairs: [(String, YAMLText)] = [("port", .plain("\(request.port)"))]
    if request.method != "GET", request.method != "POST" {
      pairs.append(("method", .plain(request.method)))
    }
    if request.path != "/" { pairs.append(("path", escaped(request.path))) }
    if request.host != "127.0.0.1" { pairs.append(("host", escaped(request.host))) }
    if !request.headers.isEmpty {
      let headers = request.headers.map {
        YAMLText.mapping([("name", escaped($0.name)), ("value", escaped($0.value))])
      }
      pairs.append(("httpHeaders", .list(headers)))
    }
    return .mapping(pairs)
  }

  private func ending() -> [(String, YAMLText)] {
    var keys: [(String, YAMLText)] = []
    if let command = worker.stopCommand { keys.append(("stop_command", Self.command(command))) }
    if worker.stopSignal != 15 { keys.append(("stop_signal", Self.signal(worker.stopSignal))) }
    if let signal = worker.reloadSignal { keys.append(("reload_signal", Self.signal(signal))) }
    if worker.restart != RestartRules() { keys.append(("restart", Self.restart(worker.restart))) }
    return keys
  }

  static func restart(_ rules: RestartRules) -> YAMLText {
    let word = YAMLText.plain(rules.condition.rawValue)
    guard rules != RestartRules(rules.condition) else { return word }
    var pairs: [(String, YAMLText)] = [("when", word)]
    if rules.backoff != Backoff() {
      let factor = percentText(rules.backoff.factor).dropLast()
      pairs.append(
        (
          "backoff",
          .mapping([
            ("initial", .plain(rules.backoff.initial.policyText)),
            ("max", .plain(rules.backoff.max.policyText)), ("factor", .plain(String(factor))),
          ])
        ))
    }
    if let giveUp = rules.giveUp {
      if giveUp != RestartRules.GiveUp() {
        pairs.append(
          (
            "give_up",
            .mapping([
              ("after", .plain("\(giveUp.restarts)")), ("within", .plain(giveUp.window.policyText)),
            ])
          ))
      }
    } else {
      pairs.append(("give_up", .plain("never")))
    }
    return .mapping(pairs)
  }

  private func surroundings() -> [(String, YAMLText)] {
    var keys: [(String, YAMLText)] = []
    if worker.output != WorkerOutput() {
      var pairs: [(String, YAMLText)] = []
      if let file = worker.output.file { pairs.append(("file", Self.escaped(file))) }
      if let size = worker.output.maxSize {
        pairs.append(("max_size", .plain(size.policyText)))
        pairs.append(("keep", .plain("\(worker.output.keep)")))
      }
      keys.append(("output", .mapping(pairs)))
    }
    if !worker.listen.isEmpty { keys.append(("listen", listen())) }
    if !worker.wakeAt.isEmpty {
      keys.append(("wake_at", .list(worker.wakeAt.map { .text($0.text) })))
    }
    if !worker.wakeWith.isEmpty {
      keys.append(("wake_with", .list(worker.wakeWith.map { .text($0) })))
    }
    if !worker.healthChecksWhileAsleep.isEmpty {
      let items = worker.healthChecksWhileAsleep.map { answer -> YAMLText in
        let port = YAMLText.plain("\(answer.port)")
        return answer.path.map { .mapping([("port", port), ("path", Self.escaped($0))]) } ?? port
      }
      keys.append(("health_checks_while_asleep", .list(items)))
    }
    let hooks = Self.hooks(worker.hooks)
    if !hooks.isEmpty { keys.append(("on", .mapping(hooks))) }
    return keys
  }

  private static func hooks(_ hooks: Hooks) -> [(String, YAMLText)] {
    var pairs: [(String, YAMLText)] = []
    for event in Hooks.Event.allCases {
      guard let commands = hooks.commands[event], let first = commands.first else { continue }
      let several = YAMLText.list(commands.map(command))
      pairs.append((event.rawValue, commands.count == 1 ? command(first) : several))
    }
    if !pairs.isEmpty, hooks.timeout != Hooks().timeout {
      pairs.append(("timeout", .plain(hooks.timeout.policyText)))
    }
    return pairs
  }

  private func listen() -> YAMLText {
    let sockets = worker.listen
    guard sockets.contains(where: { $0.name != worker.name }) else {
      return .list(sockets.map { Self.escaped($0.address.text) })
    }
    return .mapping(sockets.map { ($0.name, Self.escaped($0.address.text)) })
  }

  private static func signal(_ number: Int32) -> YAMLText {
    .plain(Signals.named.first { $0.number == number }?.name ?? "TERM")
  }

  /// What a `$` in a value must be written as.
  static func escaped(_ text: String) -> YAMLText {
    .text(text.split(separator: "$", omittingEmptySubsequences: false).joined(separator: "$$"))
  }

  static func command(_ words: [String]) -> YAMLText {
    .list(words.map { .text(escapedWord($0)) })
  }

  /// In commands only `${` is special.
  static func escapedWord(_ word: String) -> String {
    word.replacing("${", with: "$${")
  }
}
