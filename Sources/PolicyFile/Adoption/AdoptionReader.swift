import Policy
import YAML

/// Reads `adopt:` of all files of a configuration, or of one file of rules.
struct AdoptionReader {
  var library: PolicyLibrary
  /// The machine's policy, over which each rule's own keys are laid.
  var policy: LifecyclePolicy
  /// The name of the file of rules that is being read. Such a file can't name others. nil: it is
  /// the configuration.
  var set: String?

  /// A rule, and the position of its entry.
  struct ReadRule {
    var rule: AdoptionRule
    var sink: DiagnosticSink
    var position: Position?
    /// The values of its policy that the rule sets.
    var source: Origins.Source
  }

  func read(_ files: [MappingReader]) -> [ReadRule] {
    var readRules: [ReadRule] = []
    for item in files.flatMap(items(of:)) {
      readRules += entry(item, number: readRules.count + 1)
    }
    return unique(readRules)
  }

  private func items(of file: MappingReader) -> [MappingReader] {
    guard let node = file.node("adopt") else { return [] }
    if node.isEmpty { return [] }
    guard case .sequence(let items) = node else {
      file.sink.error(
        at: node.position, "`adopt` must be a list of rules, not \(node.kind)",
        suggestion: "begin each rule with `- `")
      return []
    }
    return items.compactMap { file.reader(of: $0, called: "adopt", positions: KeyPositions()) }
  }

  /// Reports a name that two rules have: their workers would have the same names.
  private func unique(_ readRules: [ReadRule]) -> [ReadRule] {
    var first: [String: String] = [:]
    for each in readRules {
      if let location = first[each.rule.name] {
        each.sink.error(
          at: each.position,
          "the rule `\(each.rule.name)` is given twice; the first is \(location)",
          suggestion: "give one of them another `name`, or leave it out")
      }
      first[each.rule.name] = first[each.rule.name] ?? each.sink.location(each.position)
    }
    return readRules
  }

  /// Reads one entry: a rule, or a file of rules.
  private func entry(_ reader: MappingReader, number: Int) -> [ReadRule] {
    var rule = AdoptionRule(name: "rule-\(number)", matches: [], policy: policy)
    (AdoptionKeys.changes + AdoptionKeys.rule).read(reader, into: &rule)
    rule.set = set
    var readRules: [ReadRule] = []
    let name = set == nil ? reader.read("rules", as: .name("the name of a file of rules")) : nil
    if set == nil, reader.position(ofKey: "rules") != nil {
      refuseBesideRules(reader)
      if let name { readRules = rules(ofSet: name, reader) }
      for key in AdoptionKeys.changes where reader.position(ofKey: key.name) != nil {
        for index in readRules.indices { key.copy(rule, &readRules[index].rule) }
      }
    } else {
      if reader.position(ofKey: "match") == nil {
        reader.sink.error(
          at: reader.start, "a rule needs `match`, or `rules` with the name of a file of rules",
          suggestion: #"write `match: { command: "*/tsserver.js*" }`"#)
      }
      let source = Origins.Source(layer: .rule, file: reader.sink.source.file, keys: [:])
      readRules = [ReadRule(rule: rule, sink: reader.sink, position: reader.start, source: source)]
    }
    let overrides = reader.overrides("policy")
    for index in readRules.indices {
      guard let overrides else { continue }
      let base = readRules[index].rule.policy
      readRules[index].rule.policy = PolicyReader(scope: .worker).read(overrides, over: base)
      // The origin has only one file. If the configuration changes a file of rules, it is the
      // configuration's.
      readRules[index].source = Origins.Source(
        layer: .rule, file: reader.sink.source.file, keys: overrides.positions.settings)
    }
    for index in readRules.indices where readRules[index].rule.mode == .shadow {
      readRules[index].source.keys["mode"] = reader.position(ofKey: "mode") ?? reader.start
    }
    reader.finish()
    if set == nil { warnOfManualForeground(readRules, reader) }
    return readRules
  }

  private func refuseBesideRules(_ reader: MappingReader) {
    for key in AdoptionKeys.rule.map(\.name) {
      guard let position = reader.position(ofKey: key) else { continue }
      reader.sink.error(
        at: position, "`\(key)` can't stand beside `rules`",
        suggestion: "make it a rule of its own, with its own `match`")
    }
  }

  /// Warns of a policy with manual foreground. Only activity shows that the program is used, and
  /// nothing else moves an adopted worker to the foreground.
  private func warnOfManualForeground(_ readRules: [ReadRule], _ reader: MappingReader) {
    guard readRules.contains(where: { $0.rule.mode == .manage }), policy.foreground.mode == .manual
    else { return }
    reader.sink.warning(
      at: reader.position(ofKey: "mode") ?? reader.start,
      "`foreground.mode` is `manual`: a worker of this rule is suspended soon after each wake, "
        + "even while it is used",
      suggestion: "use a policy with `foreground.mode: activity`, such as `policy: developer`")
  }

  // MARK: files of rules

  private func rules(ofSet name: String, _ reader: MappingReader) -> [ReadRule] {
    let position = reader.positions["rules"]
    guard let source = library.rules(name) else {
      reader.sink.error(
        at: position, "there are no rules named `\(shortened(name))`",
        suggestion: PolicyLibrary.suggestion(instead: name, of: library.ruleNames))
      return []
    }
    switch source {
    case .failure(let problem):
      reader.sink.add([problem])
      return []
    case .success(let text):
      var inner = self
      inner.set = name
      let sink = DiagnosticSink(source: text)
      var readRules: [ReadRule] = []
      if let top = sink.topReader(of: "a file of rules") {
        readRules = inner.read([top])
        top.finish()
      }
      reader.sink.add(sink.diagnostics)
      // Duplicates are reported at the position where the configuration names the file.
      return readRules.map {
        ReadRule(rule: $0.rule, sink: reader.sink, position: position, source: $0.source)
      }
    }
  }
}
