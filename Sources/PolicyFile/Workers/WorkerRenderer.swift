import Policy

extension ConfigurationFile {
  /// A worker's entry as YAML, keys with their defaults left out. Reading it gives the worker back,
  /// but for its policy.
  public static func render(_ worker: WorkerConfiguration) -> String {
    let usual = WorkerConfiguration(name: worker.name, command: [])
    let lines = WorkerKeys.all.flatMap { key -> [String] in
      guard let value = key.write(worker), value.flow != key.write(usual)?.flow else { return [] }
      return YAMLText.lines(key.name, value, indent: "    ")
    }
    return (["  \(YAMLText.scalar(worker.name)):"] + lines).joined(separator: "\n") + "\n"
  }
}

/// Values of a worker's keys as YAML.
enum WorkerRenderer {
  static func limits(_ limits: ResourceLimits) -> YAMLText {
    var pairs: [(String, YAMLText)] = []
    for resource in ResourceLimits.Resource.allCases {
      guard let limit = limits.resources[resource] else { continue }
      let soft = Self.amount(limit.soft, resource.unit)
      let hard = Self.amount(limit.hard, resource.unit)
      pairs.append(
        (
          resource.rawValue,
          limit.soft == limit.hard ? soft : .mapping([("soft", soft), ("hard", hard)])
        ))
    }
    if let memory = limits.memory { pairs.append(("memory", .plain(memory.policyText))) }
    if let footprint = limits.footprint {
      pairs.append(("footprint", Self.footprint(footprint)))
    }
    if let score = limits.oomScore { pairs.append(("oom_score_adj", .plain("\(score)"))) }
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

  static func shed(_ shed: WorkerConfiguration.Shed?) -> YAMLText {
    switch shed {
    case .signal(let number): .mapping([("signal", Converter.shedSignal.write(number))])
    case .command(let words): .mapping([("command", command(words))])
    case .http(let request): .mapping([("http", self.request(request))])
    case .notify: .mapping([("notify", .plain("true"))])
    case nil: .mapping([])
    }
  }

  static func readiness(
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

  static func output(_ output: WorkerOutput) -> YAMLText {
    var pairs: [(String, YAMLText)] = []
    if let file = output.file { pairs.append(("file", escaped(file))) }
    if let size = output.maxSize {
      pairs.append(("max_size", .plain(size.policyText)))
      pairs.append(("keep", .plain("\(output.keep)")))
    }
    return .mapping(pairs)
  }

  static func asleepAnswer(_ answer: AsleepAnswer) -> YAMLText {
    let port = YAMLText.plain("\(answer.port)")
    return answer.path.map { .mapping([("port", port), ("path", escaped($0))]) } ?? port
  }

  static func hooks(_ hooks: Hooks) -> [(String, YAMLText)] {
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

  static func listen(_ worker: WorkerConfiguration) -> YAMLText {
    let sockets = worker.listen
    guard sockets.contains(where: { $0.name != worker.name }) else {
      return .list(sockets.map { escaped($0.address.text) })
    }
    return .mapping(sockets.map { ($0.name, escaped($0.address.text)) })
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
