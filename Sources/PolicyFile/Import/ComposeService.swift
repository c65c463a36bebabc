import Policy
import YAML

/// One entry of `services:`.
struct ComposeService {
  private var service: ForeignMapping
  private var imported: ImportedWorker
  private let names: Set<String>

  init(name: String, _ mapping: YAMLNode.Mapping, _ names: Set<String>) {
    service = ForeignMapping(mapping)
    imported = ImportedWorker(name: name)
    imported.isStopped = true
    self.names = names
  }

  mutating func worker() -> ImportedWorker {
    command()
    surroundings()
    dependencies()
    health()
    restart()
    if let signal = service.text("stop_signal") {
      add("stop_signal", .plain(signal.hasPrefix("SIG") ? String(signal.dropFirst(3)) : signal))
    }
    if let time = service.text("stop_grace_period").flatMap(Self.duration) {
      add("stop_grace", .plain(time))
    }
    for key in service.leftovers { addNote("Not taken over: `\(key)`.") }
    return imported
  }

  private mutating func add(_ key: String, _ value: YAMLText) { imported.keys.append((key, value)) }
  private mutating func addNote(_ text: String) { imported.notes.append(text) }

  private mutating func command() {
    let image = service.text("image")
    if let image { addNote("Its image: `\(shortened(image))`.") }
    let entry = words("entrypoint")
    let command = words("command")
    guard entry != nil || command != nil else {
      addNote("Its command is the image's: write it here.")
      return add("command", .list([.text("false")]))
    }
    add("command", WorkerRenderer.command((entry ?? []) + (command ?? [])))
  }

  /// A list, or a line that a shell would split; compose runs no shell by itself.
  private mutating func words(_ key: String) -> [String]? {
    guard let node = service.node(key) else { return nil }
    let parts: [String]
    if case .sequence(let items) = node {
      parts = items.compactMap { $0.scalar?.string }
    } else if let line = node.scalar?.string, line.contains(where: { "\"'\\".contains($0) }) {
      parts = ["sh", "-c", "exec \(line)"]
    } else {
      parts = node.scalar?.string.split(whereSeparator: \.isWhitespace).map(String.init) ?? []
    }
    return parts.isEmpty ? nil : parts.map { $0.replacing("$$", with: "$") }
  }

  private mutating func surroundings() {
    if let directory = service.text("working_dir") {
      addNote(
        "`working_dir: \(shortened(directory))` is a path in the image: set `directory` yourself.")
    }
    let files = service.texts("env_file")
    if !files.isEmpty { add("env_file", .list(files.map { .text($0) })) }
    let variables = service.variables("environment").filter {
      EnvironmentReader.problem(withName: $0.0) == nil
    }
    if !variables.isEmpty {
      add("environment", .mapping(variables.map { ($0, .text($1)) }))
    }
    if !service.inherited.isEmpty {
      let names = service.inherited.map { "`\(shortened($0))`" }.joined(separator: ", ")
      addNote("\(names): without a value; workers inherit the daemon's environment.")
    }
  }

  private mutating func dependencies() {
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
    pairs = pairs.filter { names.contains($0.0) }
    guard !pairs.isEmpty else { return }
    let known = pairs.map { name, condition in
      (name, YAMLText.mapping([("condition", .plain(condition.rawValue))]))
    }
    add("depends_on", .mapping(known))
  }

  private mutating func health() {
    guard var check = service.mapping("healthcheck") else { return }
    let test = check.texts("test")
    let command: YAMLText
    switch test.first {
    case "CMD": command = WorkerRenderer.command(Array(test.dropFirst()))
    case "CMD-SHELL": command = WorkerRenderer.command(["sh", "-c"] + test.dropFirst().prefix(1))
    case "NONE", nil: return
    default: command = WorkerRenderer.command(["sh", "-c", test.joined(separator: " ")])
    }
    var pairs: [(String, YAMLText)] = [("exec", .mapping([("command", command)]))]
    if let retries = check.number("retries", 1...1_000) {
      pairs.append(("failureThreshold", .plain("\(retries)")))
    }
    for (theirs, ours) in [("interval", "periodSeconds"), ("timeout", "timeoutSeconds")] {
      guard let time = check.text(theirs), let seconds = Self.wholeSeconds(time) else { continue }
      pairs.append((ours, .plain("\(seconds)")))
    }
    add("readiness", .mapping(pairs))
    for key in check.leftovers { addNote("Not taken over: `healthcheck.\(key)`.") }
  }

  private mutating func restart() {
    guard let text = service.text("restart") else { return }
    var rules = RestartRules()
    switch text.split(separator: ":").first {
    case "always", "unless-stopped": rules.condition = .always
    case "on-failure": rules.condition = .onFailure
    default: return
    }
    add("restart", WorkerRenderer.restart(rules))
  }

  /// Go's durations with one unit, which are ours, too; `nil` for `1m30s`.
  private static func duration(_ text: String) -> String? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    return !digits.isEmpty && ["ms", "s", "m", "h"].contains(String(text[digits.endIndex...]))
      ? text : nil
  }

  private static func wholeSeconds(_ text: String) -> Int? {
    guard let text = duration(text) else { return nil }
    let digits = text.prefix { $0.isNumber }
    guard let value = Int(digits) else { return nil }
    switch text[digits.endIndex...] {
    case "s": return max(1, value)
    case "m": return value * 60
    case "h": return value * 3_600
    default: return 1
    }
  }
}
