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
  struct Found {
    var rule: AdoptionRule
    var sink: DiagnosticSink
    var position: Position?
    /// The values of its policy that the rule sets.
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

  /// Reports a name that two rules have: their workers would have the same names.
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

  /// Reads one entry: a rule, or a file of rules.
  func entry(_ reader: MappingReader, number: Int) -> [Found] {
    var rule = AdoptionRule(name: "rule-\(number)", matches: [], policy: policy)
    (AdoptionKeys.changes + AdoptionKeys.own).read(reader, into: &rule)
    rule.set = set
    var found: [Found] = []
    let name = set == nil ? reader.read("rules", as: .name("the name of a file of rules")) : nil
    if set == nil, reader.position(ofKey: "rules") != nil {
      refuseBesideRules(reader)
      if let name { found = rules(ofSet: name, reader) }
      for key in AdoptionKeys.changes where reader.position(ofKey: key.name) != nil {
        for index in found.indices { key.copy(rule, &found[index].rule) }
      }
    } else {
      if reader.shape == nil, reader.position(ofKey: "match") == nil {
        reader.sink.error(
          at: reader.own, "a rule needs `match`, or `rules` with the name of a file of rules",
          suggestion: #"write `match: { command: "*/tsserver.js*" }`"#)
      }
      let source = Origins.Source(layer: .rule, file: reader.sink.source.file, keys: [:])
      found = [Found(rule: rule, sink: reader.sink, position: reader.own, source: source)]
    }
    let overrides = reader.overrides("policy", scope: .worker)
    for index in found.indices {
      guard let overrides else { continue }
      let base = found[index].rule.policy
      found[index].rule.policy = PolicyReader(scope: .worker).read(overrides, over: base)
      // The origin has only one file. If the configuration changes a file of rules, it is the
      // configuration's.
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

  private func refuseBesideRules(_ reader: MappingReader) {
    for key in AdoptionKeys.own.map(\.name) {
      guard let position = reader.position(ofKey: key) else { continue }
      reader.sink.error(
        at: position, "`\(key)` can't stand beside `rules`",
        suggestion: "make it a rule of its own, with its own `match`")
    }
  }

  /// Warns of a policy with manual foreground. Only activity shows that the program is used, and
  /// nothing else moves an adopted worker to the foreground.
  private func warnOfManualForeground(_ found: [Found], _ reader: MappingReader) {
    guard found.contains(where: { $0.rule.mode == .manage }), policy.foreground.mode == .manual
    else { return }
    reader.sink.warning(
      at: reader.position(ofKey: "mode") ?? reader.own,
      "`foreground.mode` is `manual`: a worker of this rule is suspended soon after each wake, "
        + "even while it is used",
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
      // Duplicates are reported at the position where the configuration names the file.
      return found.map {
        Found(rule: $0.rule, sink: reader.sink, position: position, source: $0.source)
      }
    }
  }
}
