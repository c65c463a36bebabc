import Policy
import YAML

/// Reads `adopt:` of all files of a configuration, or of one file of rules.
struct AdoptionReader {
  var library: PolicyLibrary
  /// The machine's, which each rule's own keys are laid over.
  var policy: LifecyclePolicy
  /// A file of rules that an entry names; it can't name others.
  var set: String?

  /// A rule, and where its entry stands.
  struct Found {
    var rule: AdoptionRule
    var sink: DiagnosticSink
    var position: Position?
    /// What the rule sets of its policy.
    var source: Origins.Source
  }

  func read(_ parts: [MappingReader]) -> [Found] {
    var found: [Found] = []
    for part in parts {
      if let shape = part.shape {
        shape.add("adopt", .list(.mapping(KeyExplorer.adoptionRule())))
        continue
      }
      for item in items(of: part) {
        found += entry(item, number: found.count + 1)
      }
    }
    return unique(found)
  }

  private func items(of part: MappingReader) -> [MappingReader] {
    guard let node = part.node("adopt") else { return [] }
    if node.isEmpty { return [] }
    guard case .sequence(let items) = node else {
      part.sink.error(
        at: node.position, "`adopt` must be a list of rules, not \(node.kind)",
        suggestion: "begin each rule with `- `")
      return []
    }
    return items.compactMap { part.reader(of: $0, called: "adopt", places: Places()) }
  }

  /// Two rules of one name would give their workers the same names.
  private func unique(_ found: [Found]) -> [Found] {
    var first: [String: String] = [:]
    for each in found {
      if let place = first[each.rule.name] {
        each.sink.error(
          at: each.position, "the rule `\(each.rule.name)` is given twice; the first is \(place)",
          suggestion: "give one of them another `name`, or leave it out")
      }
      first[each.rule.name] = first[each.rule.name] ?? each.sink.place(each.position)
    }
    return found
  }

  /// One entry: a rule, or a file of rules.
  func entry(_ reader: MappingReader, number: Int) -> [Found] {
    let changes = RuleChanges(reader)
    let own = RuleKeys(reader)
    var found: [Found] = []
    let name = set == nil ? reader.read("rules", as: .name("the name of a file of rules")) : nil
    if set == nil, reader.position(ofKey: "rules") != nil {
      own.refuseBeside(reader)
      if let name { found = rules(ofSet: name, reader) }
    } else {
      var rule = AdoptionRule(
        name: own.name ?? "rule-\(number)", matches: own.matches, policy: policy)
      rule.includesTerminals = own.includesTerminals ?? false
      rule.set = set
      own.check(reader)
      let source = Origins.Source(layer: .rule, file: reader.sink.source.file, keys: [:])
      found = [Found(rule: rule, sink: reader.sink, position: reader.own, source: source)]
    }
    let overrides = reader.overrides("policy", scope: .worker)
    for index in found.indices {
      changes.apply(to: &found[index].rule)
      guard let overrides else { continue }
      let base = found[index].rule.policy
      found[index].rule.policy = PolicyReader(scope: .worker).read(overrides, over: base)
      // Of a file of rules that the configuration changes, only one file can be named.
      found[index].source = Origins.Source(
        layer: .rule, file: reader.sink.source.file, keys: overrides.places.settings)
    }
    for index in found.indices where found[index].rule.mode == .shadow {
      found[index].source.keys["mode"] = reader.position(ofKey: "mode") ?? reader.own
    }
    reader.finish()
    if set == nil { warnOfManualForeground(found, reader) }
    return found
  }

  /// Only activity knows that the program is used: nothing else puts an adopted worker in the foreground.
  private func warnOfManualForeground(_ found: [Found], _ reader: MappingReader) {
    guard found.contains(where: { $0.rule.mode == .manage }), policy.foreground.mode == .manual
    else { return }
    reader.sink.warning(
      at: reader.position(ofKey: "mode") ?? reader.own,
      "`foreground.mode` is `manual`: a worker of this rule is suspended soon after each wake, even "
        + "while it is used",
      suggestion: "use a policy with `foreground.mode: activity`, such as `policy: developer`")
  }

  // MARK: files of rules

  private func rules(ofSet name: String, _ reader: MappingReader) -> [Found] {
    let position = reader.places["rules"]
    guard let source = library.rules(name) else {
      let names = library.ruleNames
      let meant = didYouMean(name, among: names).map { $0 + " " } ?? ""
      reader.sink.error(
        at: position, "there are no rules named `\(shortened(name))`",
        suggestion: "\(meant)Available: \(names.joined(separator: ", "))")
      return []
    }
    switch source {
    case .failure(let problem):
      reader.sink.add([problem.diagnostic])
      return []
    case .success(let text):
      var inner = self
      inner.set = name
      let sink = DiagnosticSink(source: text)
      var found: [Found] = []
      if let document = Document.compose(sink),
        let mapping = sink.topMapping(document.root, of: "a file of rules")
      {
        let top = MappingReader(mapping, title: "", sink: sink)
        found = inner.read([top])
        top.finish()
      }
      let result: ParseResult<Int> = sink.result(nil)
      reader.sink.add(result.diagnostics)
      // Duplicates are reported where the configuration names the file.
      return found.map {
        Found(rule: $0.rule, sink: reader.sink, position: position, source: $0.source)
      }
    }
  }
}

/// Keys that every entry has: those of a file of rules are changed by them.
private struct RuleChanges {
  private var mode: AdoptionRule.Mode?
  private var mayTerminate: Bool?
  private var limit: Int?
  private var importance: Int?
  private var exceptions: [ProcessPattern]

  init(_ reader: MappingReader) {
    exceptions = PatternReader(reader: reader).read("except")
    mode = reader.read("mode", as: .choice)
    mayTerminate = reader.read("may_terminate", as: .boolean)
    limit = reader.read("limit", as: .integer(1...1_000))
    importance = reader.read("importance", as: .integer(0...100))
  }

  func apply(to rule: inout AdoptionRule) {
    rule.exceptions += exceptions
    rule.mode = mode ?? rule.mode
    rule.mayTerminate = mayTerminate ?? rule.mayTerminate
    rule.limit = limit ?? rule.limit
    rule.importance = importance ?? rule.importance
  }
}

/// Keys of a rule that is written out.
private struct RuleKeys {
  var name: String?
  var matches: [ProcessPattern]
  var includesTerminals: Bool?

  init(_ reader: MappingReader) {
    name = reader.read(
      "name",
      as: Converter.name("a name such as `tsserver`").checked { name in
        name.utf8.count <= AdoptionRule.longestName
          ? nil
          : Problem(
            message: "is \(name.utf8.count) characters long; a rule's name has at most "
              + "\(AdoptionRule.longestName)")
      })
    matches = PatternReader(reader: reader).read("match")
    includesTerminals = reader.read("terminal", as: .boolean)
  }

  func check(_ reader: MappingReader) {
    guard reader.shape == nil, reader.position(ofKey: "match") == nil else { return }
    reader.sink.error(
      at: reader.own, "a rule needs `match`, or `rules` with the name of a file of rules",
      suggestion: #"write `match: { command: "*/tsserver.js*" }`"#)
  }

  func refuseBeside(_ reader: MappingReader) {
    for key in ["name", "match", "terminal"] {
      guard let position = reader.position(ofKey: key) else { continue }
      reader.sink.error(
        at: position, "`\(key)` can't stand beside `rules`",
        suggestion: "make it a rule of its own, with its own `match`")
    }
  }
}

/// `match` and `except`: a mapping, or a list of mappings.
private struct PatternReader {
  var reader: MappingReader

  func read(_ key: String) -> [ProcessPattern] {
    if let shape = reader.shape {
      let inner = MappingShape()
      _ = pattern(MappingReader(exploring: inner, path: reader.path(of: key)))
      shape.add(key, .either([.mapping(inner), .list(.mapping(inner))]))
      return []
    }
    guard let node = reader.node(key) else { return [] }
    let items: [YAMLNode]
    if case .sequence(let sequence) = node { items = Array(sequence) } else { items = [node] }
    if items.isEmpty { reader.sink.error(at: node.position, "`\(key)` is an empty list") }
    return items.compactMap { item in
      guard let inner = reader.reader(of: item, called: key, places: Places()) else { return nil }
      let pattern = pattern(inner)
      inner.finish()
      if key == "match" { checkNarrow(pattern, inner, at: item.position) }
      if key == "except", inner.order.isEmpty {
        reader.sink.error(at: item.position, "`except` without a key would match every process")
      }
      return pattern
    }
  }

  private func pattern(_ reader: MappingReader) -> ProcessPattern {
    var pattern = ProcessPattern()
    func globs(_ key: String) -> [Glob] { reader.oneOrMore(key, of: .glob).map(\.value) }
    pattern.command = globs("command")
    pattern.executable = globs("exe")
    pattern.name = globs("name")
    pattern.cgroup = globs("cgroup")
    pattern.unit = globs("unit")
    pattern.user = reader.read("user", as: .account("a user's name or number, or `me`"))
      .map { ProcessPattern.User($0) }
    pattern.olderThan = reader.read("older_than", as: .duration)
    pattern.minFootprint = reader.read("min_footprint", as: .size)
    return pattern
  }

  /// Age and user alone fit a shell and a desktop as well.
  private func checkNarrow(
    _ pattern: ProcessPattern, _ inner: MappingReader, at position: Position?
  ) {
    let keys = ["command", "exe", "name", "cgroup", "unit"]
    guard !keys.contains(where: { inner.position(ofKey: $0) != nil }) else { return }
    reader.sink.error(
      at: inner.own ?? position, "`match` needs one of \(listed(keys))",
      suggestion: "a rule without one of them would match every process")
  }
}

extension Converter where Value == Glob {
  fileprivate static var glob: Converter {
    Converter<String>.text("a pattern such as `*/tsserver.js*`").checked {
      $0.isEmpty ? Problem(message: "is an empty pattern, which matches nothing") : nil
    }.map { Glob($0) }
  }
}
