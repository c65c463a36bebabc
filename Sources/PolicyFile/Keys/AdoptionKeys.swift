import Policy
import YAML

/// The keys of a rule of `adopt:`.
enum AdoptionKeys {
  typealias RuleKey = Key<AdoptionRule>

  /// The keys of every entry. In an entry with `rules` they change the rules of the file.
  @KeyList<AdoptionRule> static var changes: [RuleKey] {
    patterns(
      "except", \.exceptions, about: "processes that are left out, although they match")
    RuleKey(
      "mode", \.mode, as: .choice,
      about: """
        `shadow`: decisions are logged, not applied. `manage`: they are applied. Default: shadow
        """)
    RuleKey(
      "may_terminate", \.mayTerminate, as: .boolean,
      about: "`true`: its workers may be terminated when memory runs out. Default: `false`")
    RuleKey(
      "limit", \.limit, as: .integer(1...1_000),
      about: "the most workers that the rule has at a time, 1 to 1000. Default: 50")
    RuleKey(
      "importance", \.importance, as: .integer(0...100),
      about: """
        0 to 100. Among workers in the same state, a higher one is terminated later. Default: 0
        """)
  }

  /// The additional keys of an entry that is a rule itself.
  @KeyList<AdoptionRule> static var rule: [RuleKey] {
    RuleKey(
      "name", \.name, as: .ruleName,
      about: "the rule's name. Its workers are called NAME-PID. Default: rule-N")
    patterns(
      "match", \.matches,
      about: "what a process has to be: a mapping, or a list of which one is enough")
    RuleKey(
      "terminal", \.includesTerminals, as: .boolean,
      about: """
        `true`: also programs that a shell on a terminal watches, or that read from one. Default: \
        `false`
        """)
  }

  /// A key whose value is a mapping, or a list of mappings.
  private static func patterns(
    _ name: String, _ path: WritableKeyPath<AdoptionRule, [ProcessPattern]>, about: String
  ) -> RuleKey {
    let shape = ValueShape.mapping(MappingShape(pattern))
    return RuleKey(
      name, shape: shape.orList, about: about,
      read: { reader, rule in
        guard let node = reader.node(name) else { return }
        let items = node.sequence?.items ?? [node]
        if items.isEmpty { reader.sink.error(at: node.position, "`\(name)` is an empty list") }
        rule[keyPath: path] = items.compactMap { item in
          guard let inner = reader.reader(of: item, called: name, positions: KeyPositions()) else {
            return nil
          }
          var processPattern = ProcessPattern()
          pattern.read(inner, into: &processPattern)
          inner.finish()
          checkNarrow(name, inner, at: item.position)
          return processPattern
        }
      },
      write: { _ in nil }, copy: { $1[keyPath: path] += $0[keyPath: path] })
  }

  private static func checkNarrow(
    _ name: String, _ pattern: MappingReader, at position: Position?
  ) {
    if name == "except", pattern.order.isEmpty {
      pattern.sink.error(at: position, "`except` without a key would match every process")
    }
    // Age and user alone would match a shell and a desktop as well.
    let keys = ["command", "exe", "name", "cgroup", "unit"]
    if name == "match", !keys.contains(where: { pattern.position(ofKey: $0) != nil }) {
      pattern.sink.error(
        at: pattern.start ?? position, "`match` needs one of \(listed(keys))",
        suggestion: "a rule without one of them would match every process")
    }
  }

  @KeyList<ProcessPattern> private static var pattern: [Key<ProcessPattern>] {
    globs("command", \.command, for: "the whole command line, its words joined by blanks")
    globs("exe", \.executable, for: "the path of the program")
    globs("name", \.name, for: "the kernel's name of the process (15 bytes)")
    globs("cgroup", \.cgroup, for: "the path in the cgroup2 tree")
    globs("unit", \.unit, for: "the name of the systemd service or scope")
    Key<ProcessPattern>(
      "user", \.user, as: Converter.account("a user's name or number, or `me`").map { .init($0) },
      about: "a user's name or number; `me` is the daemon's user")
    Key<ProcessPattern>(
      "older_than", \.olderThan, as: .duration,
      about: "the process has run for at least this long")
    Key<ProcessPattern>(
      "min_footprint", \.minFootprint, as: .size,
      about: "the process has at least this much memory of its own")
  }

  private static func globs(
    _ name: String, _ path: WritableKeyPath<ProcessPattern, [Glob]>, for subject: String
  ) -> Key<ProcessPattern> {
    let shape = Converter.glob.shape
    return Key<ProcessPattern>(
      name, shape: shape.orList,
      about: "a pattern for \(subject), or a list of patterns",
      read: { $1[keyPath: path] = $0.oneOrMore(name, of: .glob).map(\.value) },
      write: { _ in nil })
  }
}

extension Converter where Value == Glob {
  fileprivate static var glob: Converter {
    Converter<String>.text("a pattern such as `*/tsserver.js*`").checked {
      $0.isEmpty ? Problem(message: "is an empty pattern, which matches nothing") : nil
    }.map { Glob($0) }
  }
}

extension Converter where Value == String {
  fileprivate static var ruleName: Converter {
    Converter.name("a name such as `tsserver`").checked { name in
      name.utf8.count <= AdoptionRule.longestName
        ? nil
        : Problem(
          message: "is \(name.utf8.count) characters long; a rule's name has at most "
            + "\(AdoptionRule.longestName)")
    }
  }
}
