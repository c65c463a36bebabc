import YAML

/// Imports the common part of a process-compose file (F1bonacc1/process-compose, version 0.5).
public enum ProcessComposeImport {
  /// Converts a file.
  ///
  /// - Parameter environmentFile: the text of the `.env` beside it, which process-compose loads,
  ///   too. `nil`: there is none.
  public static func convert(
    text: String, file: String, environmentFile: String? = nil
  ) -> ParseResult<ImportedConfiguration> {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    guard let mapping = sink.topMapping(of: "a process-compose file", mergesKeys: true) else {
      return sink.result(nil)
    }
    var top = ForeignMapping(mapping)
    var result = ImportedFile(source: FilePaths.name(of: file))
    top.skip("version", "is_strict", "log_level", "log_length", "processes")
    let variables = Dictionary(top.variables("vars")) { _, last in last }
    let shared = ProcessComposeEntry.Shared(
      shell: shell(&top), environment: top.variables("environment"),
      variables: ForeignVariables(environmentFile: environmentFile))
    guard let processes = mapping["processes"], case .mapping(let entries) = processes else {
      let isOfPM2 = mapping["apps"] != nil
      sink.error(
        at: nil, "not a process-compose file: no `processes`",
        suggestion: isOfPM2 ? "this is a file of pm2: name its format with --format pm2" : nil)
      return sink.result(nil)
    }
    var copies: [String: [String]] = [:]
    for (key, node) in entries {
      if let name = key.scalar?.string { copies[name] = replicas(name, node) }
    }
    for (name, key, process) in sink.namedEntries(of: entries) {
      for (index, replica) in (copies[name] ?? [name]).enumerated() {
        var foreign = ForeignMapping(process)
        let template = Template(
          variables: variables.merging(foreign.variables("vars")) { $1 }
            .merging(["PC_REPLICA_NUM": "\(index)"]) { $1 })
        var unknown: [String] = []
        guard case .mapping(let rendered) = template.render(.mapping(process), &unknown) else {
          continue
        }
        var one = ProcessComposeEntry(
          name: replica, mapping: rendered, shared: shared, names: copies)
        if replica != name { one.add(replica: index) }
        guard var worker = one.worker() else {
          sink.error(
            at: key.position, "`\(name)` has no `command`",
            suggestion: "leave it out, or give it one")
          break
        }
        worker.cannotRun(because: unknown)
        result.workers.append(worker)
      }
    }
    result.notes += top.leftovers.map { "Not taken over: `\($0)`." }
    result.notes += shared.variables.notes
    return sink.result(result.rendered())
  }

  /// Returns the names of the workers that one entry becomes: its own name, or `NAME-0` to
  /// `NAME-9`, with as many digits as the highest number has.
  private static func replicas(_ name: String, _ node: YAMLNode) -> [String] {
    guard case .mapping(let mapping) = node else { return [name] }
    var process = ForeignMapping(mapping)
    guard let count = process.number("replicas", 2...1_000) else { return [name] }
    let width = "\(count - 1)".count
    return (0..<count).map { index in
      let digits = "\(index)"
      return "\(name)-" + String(repeating: "0", count: width - digits.count) + digits
    }
  }

  private static func shell(_ top: inout ForeignMapping) -> [String] {
    guard var shell = top.mapping("shell") else { return ["bash", "-c"] }
    return [shell.text("shell_command") ?? "bash", shell.text("shell_argument") ?? "-c"]
  }
}

extension DiagnosticSink {
  /// Returns the entries that can become workers: mappings with a valid name. All others are
  /// reported.
  func namedEntries(
    of mapping: YAMLNode.Mapping
  ) -> [(name: String, key: YAMLNode, entry: YAMLNode.Mapping)] {
    mapping.compactMap { key, node in
      let name = key.scalar?.string ?? ""
      guard allows(name, of: "a worker", at: key.position) else { return nil }
      guard case .mapping(let entry) = node else {
        error(at: node.position, "`\(name)` must be a mapping of keys to values")
        return nil
      }
      return (name, key, entry)
    }
  }
}

/// Reads a mapping of another program's file key by key, and records the keys that weren't read.
struct ForeignMapping {
  private let mapping: YAMLNode.Mapping
  private var readKeys: Set<String> = []
  /// The variables that a list names without a value.
  private(set) var inherited: [String] = []

  init(_ mapping: YAMLNode.Mapping) { self.mapping = mapping }

  /// The keys that weren't read, in their order.
  var leftovers: [String] {
    mapping.compactMap { $0.key.scalar?.string }.filter { !readKeys.contains($0) }.map(shortened)
  }

  mutating func skip(_ keys: String...) { readKeys.formUnion(keys) }

  mutating func node(_ key: String) -> YAMLNode? {
    readKeys.insert(key)
    return mapping[key]
  }

  /// Returns the text of a key, or nil if it is missing or empty.
  mutating func text(_ key: String) -> String? {
    node(key)?.scalar.flatMap { $0.string.isEmpty || $0.isNull ? nil : $0.string }
  }

  /// Reads a number. A key whose number can't be read counts as not read.
  mutating func number(_ key: String, _ range: ClosedRange<Int>) -> Int? {
    guard let text = text(key) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      readKeys.remove(key)
      return nil
    }
    return number
  }

  mutating func truth(_ key: String) -> Bool {
    text(key).map { ["true", "yes", "on"].contains($0.lowercased()) } ?? false
  }

  mutating func mapping(_ key: String) -> ForeignMapping? {
    guard case .mapping(let inner) = node(key) else { return nil }
    return ForeignMapping(inner)
  }

  /// Reads a list of `KEY=value`, or a mapping `{KEY: value}`.
  mutating func variables(_ key: String) -> [(String, String)] {
    switch node(key) {
    case .sequence(let items):
      return items.compactMap { item in
        guard let text = item.scalar?.string, let equals = text.firstIndex(of: "=") else {
          if let name = item.scalar?.string { inherited.append(name) }
          return nil
        }
        return (String(text[..<equals]), String(text[equals...].dropFirst()))
      }
    case .mapping(let pairs):
      return pairs.compactMap { pair in
        guard let name = pair.key.scalar?.string else { return nil }
        if pair.value.scalar?.isNull == true {
          inherited.append(name)
          return nil
        }
        return (name, pair.value.scalar?.string ?? "")
      }
    default: return []
    }
  }

  mutating func texts(_ key: String) -> [String] {
    switch node(key) {
    case .sequence(let items): items.compactMap { $0.scalar?.string }
    case .scalar(let scalar): scalar.string.isEmpty ? [] : [scalar.string]
    default: []
    }
  }

  var pairs: [(String, YAMLNode)] {
    mapping.compactMap { pair in pair.key.scalar.map { ($0.string, pair.value) } }
  }
}

extension YAMLNode.Scalar {
  /// True for a plain scalar that is no text: nothing, `null` or `~`.
  var isNull: Bool { style == .plain && ["", "null", "Null", "NULL", "~"].contains(string) }
}
