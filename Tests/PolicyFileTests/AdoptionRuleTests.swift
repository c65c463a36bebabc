import Policy
import TestSupport
import Testing

@testable import PolicyFile

@Suite struct `Rules of adoption in a configuration` {
  static let full = """
    policy: developer
    adopt:
      - name: tsserver
        match:
          - { command: ["*/tsserver.js*", "*/ts.js*"], exe: "*/node", name: node, user: me }
          - { cgroup: "/a/*", unit: "jupyter-*.service", user: "1000", older_than: 10m, \
    min_footprint: 64MB }
        except: { command: "*--test*" }
        mode: manage
        may_terminate: true
        terminal: true
        limit: 3
        importance: 7
        policy: { hibernate: { after: 1m } }
      - rules: gopls
        mode: manage
        limit: 2
        except: { user: root }
        policy: { background: { suspend_after: 5s } }
      - match: { name: x }
    """

  @Test func `All keys are read`() throws {
    let result = configuration(Self.full)
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let rules = try #require(result.value).adoption
    #expect(rules.map(\.name) == ["tsserver", "gopls", "rule-3"])
    let rule = rules[0]
    #expect(rule.matches.count == 2 && rule.matches[0].command.map(\.pattern).count == 2)
    #expect(rule.matches[0].executable == [Glob("*/node")] && rule.matches[0].user == .me)
    #expect(rule.matches[1].cgroup == [Glob("/a/*")] && rule.matches[1].user == .number(1000))
    #expect(rule.matches[1].unit == [Glob("jupyter-*.service")])
    #expect(rule.matches[1].olderThan == .seconds(600))
    #expect(rule.matches[1].minFootprint == .megabytes(64))
    #expect(rule.exceptions.map(\.command) == [[Glob("*--test*")]])
    #expect(rule.mode == .manage && rule.mayTerminate && rule.includesTerminals)
    #expect(rule.limit == 3 && rule.importance == 7 && rule.set == nil)
    #expect(rule.policy.hibernate.after == .seconds(60))
    #expect(rule.policy.name == "developer" && rule.policy.foreground.mode == .activity)
    let ready = rules[1]
    #expect(ready.set == "gopls" && ready.mode == .manage && ready.limit == 2)
    #expect(ready.matches.map(\.name) == [[Glob("gopls")]])
    #expect(ready.exceptions.last?.user == .name("root"))
    #expect(ready.policy.background.suspendAfter == .seconds(5))
    #expect(rules[2].mode == .shadow && rules[2].limit == 50 && !rules[2].mayTerminate)
  }

  @Test func `A rule's values have the position of their line, and shadow mode that of the rule`()
    throws
  {
    let origins = try #require(configuration(Self.full).value).origins
    let after = origins.origin(of: "hibernate.after", worker: Origins.name(ofRule: "tsserver"))
    #expect(after.layer == .rule && after.text == "etc/dormouse.yaml:13")
    let mode = origins.origin(of: "mode", worker: Origins.name(ofRule: "rule-3"))
    #expect(mode.layer == .rule && mode.position?.line == 19)
    #expect(
      origins.origin(of: "mode", worker: Origins.name(ofRule: "tsserver")).layer == .policy)
  }

  static let errors: [BadText] = [
    BadText(
      "adopt: { match: { name: x } }", "`adopt` must be a list of rules, not a mapping",
      "begin each rule with `- `"),
    BadText(
      "adopt: [ { name: x } ]", "a rule needs `match`, or `rules` with the name of a file of rules",
      #"write `match: { command: "*/tsserver.js*" }`"#),
    BadText(
      "adopt: [ { match: { user: me, older_than: 1m } } ]",
      "`match` needs one of `command`, `exe`, `name`, `cgroup` or `unit`",
      "a rule without one of them would match every process"),
    BadText(
      "adopt: [ { match: { comand: x } } ]", "unknown key `comand` in `adopt.match`",
      "did you mean `command`?"),
    BadText(
      "adopt: [ { match: { command: '' } } ]",
      "`command` is an empty pattern, which matches nothing"),
    BadText(
      "adopt: [ { match: { name: x, older_than: 10 } } ]", "`older_than` needs a unit",
      "write `10s`"),
    BadText(
      "adopt: [ { match: { name: x, user: 'a b' } } ]",
      "`user` must be a user's name or number, or `me`, not `a b`"),
    BadText(
      "adopt: [ { match: { name: x }, mode: managed } ]",
      "`mode` must be `shadow` or `manage`, not `managed`", "did you mean `manage`?"),
    BadText(
      "adopt: [ { match: { name: x }, limit: 0 } ]",
      "`limit` must be a whole number from 1 to 1000, not `0`"),
    BadText(
      "adopt: [ { match: { name: x }, except: {} } ]",
      "`except` without a key would match every process"),
    BadText("adopt: [ { match: [] } ]", "`match` is an empty list"),
    BadText(
      "adopt: [ { match: { name: x }, policy: { mode: shadow } } ]",
      "`mode` applies to all workers together and can't be set for one"),
    BadText(
      "adopt: [ { name: a, match: { name: x } }, { name: a, match: { name: y } } ]",
      "the rule `a` is given twice; the first is etc/dormouse.yaml:1:10",
      "give one of them another `name`, or leave it out"),
    BadText(
      "adopt: [ { rules: goples } ]", "there are no rules named `goples`",
      "did you mean `gopls`? Available: chrome, gopls, pyright, rust-analyzer, tsserver, "
        + "vscode-server"),
    BadText(
      "adopt: [ { rules: gopls, match: { name: x } } ]", "`match` can't stand beside `rules`",
      "make it a rule of its own, with its own `match`"),
    BadText(
      "adopt: [ { rules: gopls, limt: 3 } ]", "unknown key `limt` in `adopt`",
      "did you mean `limit`?"),
  ]

  @Test(arguments: errors)
  func `A mistake is an error with its position and a way to correct it`(bad: BadText) {
    let result = configuration(bad.text)
    #expect(result.value == nil)
    let error = result.errors.first { $0.message.contains(bad.message) }
    #expect(error != nil, "\(result.rendered)")
    if let suggestion = bad.suggestion {
      #expect(error?.suggestion == suggestion, "\(result.rendered)")
    }
    #expect(error?.position != nil)
  }

  @Test func `A managed rule under a manual foreground gets a warning`() {
    let manual = configuration("adopt: [ { match: { name: x }, mode: manage } ]")
    #expect(manual.warnings.map(\.message).joined().contains("`foreground.mode` is `manual`"))
    #expect(manual.value != nil)
    #expect(configuration("adopt: [ { match: { name: x } } ]").diagnostics.isEmpty)
  }

  @Test func `Rules of several files follow each other, and a user's file replaces a shipped one`()
    throws
  {
    let scratch = try Scratch()
    try scratch.write("dormouse.yaml", "adopt: [ { name: a, match: { name: a } } ]\n")
    try scratch.write("conf.d/b.yaml", "adopt: [ { rules: gopls } ]\n")
    #expect(scratch.load().value?.adoption.map(\.name) == ["a", "gopls"])
    try scratch.write(
      "policies/rules/gopls.yaml",
      "adopt:\n  - { name: go1, match: { name: gopls } }\n  - { name: go2, match: { name: go } }\n")
    try scratch.write("policies/rules/bad.yaml", "adopt: [ { rules: gopls } ]\npolicy: x\n")
    let library = PolicyLibrary(directories: ["\(scratch.path)/policies", shippedDirectory])
    let result = ConfigurationFile.load(path: scratch.path, library: library, environment: [:])
    #expect(result.value?.adoption.map(\.name) == ["a", "go1", "go2"], "\(result.rendered)")
    #expect(result.value?.adoption.map(\.set) == [nil, "gopls", "gopls"])
    #expect(library.ruleNames.contains("bad") && library.names == shipped)

    try scratch.write("conf.d/b.yaml", "adopt: [ { rules: bad } ]\n")
    let bad = ConfigurationFile.load(path: scratch.path, library: library, environment: [:])
    #expect(bad.value == nil)
    #expect(
      bad.errors.map(\.message).sorted()
        == [
          "unknown key `policy`", "unknown key `rules` in `adopt`",
          "a rule needs `match`, or `rules` with the name of a file of rules",
        ].sorted(), "\(bad.rendered)")
    #expect(bad.errors.allSatisfy { $0.file.hasSuffix("rules/bad.yaml") })
  }

  @Test func `The summary of a reload names what changed of which rule`() throws {
    let old = try #require(configuration(Self.full).value)
    let text = Self.full.replacing("limit: 3", with: "limit: 4")
      .replacing("mode: manage\n    may", with: "mode: shadow\n    may")
      .replacing("  - match: { name: x }", with: "  - { name: new, match: { name: x } }")
    let new = try #require(configuration(text).value)
    let policies = (old: old.policy, new: new.policy)
    #expect(
      AdoptionRule.changes(from: old.adoption, to: new.adoption, machine: policies) == [
        "rule rule-3 removed", "rule tsserver: mode manage → shadow, limit 3 → 4", "rule new added",
      ])
    #expect(AdoptionRule.changes(from: old.adoption, to: old.adoption, machine: policies) == [])
    let turned = Array(old.adoption.reversed())
    #expect(
      AdoptionRule.changes(from: old.adoption, to: turned, machine: policies)
        == ["order of the rules"])
  }
}

@Suite struct `Shipped rules` {
  static let names = [
    "chrome", "gopls", "pyright", "rust-analyzer", "tsserver", "vscode-server",
  ]

  @Test(arguments: names) func `Each shipped file of rules loads without a diagnostic`(name: String)
  {
    for library in [library, PolicyLibrary(directories: ["/nonexistent"])] {
      let result = ConfigurationFile.parse(
        text: "adopt: [ { rules: \(name) } ]", file: "dormouse.yaml", library: library,
        environment: [:])
      #expect(result.diagnostics.isEmpty, "\(result.rendered)")
      #expect(result.value?.adoption.map(\.name) == [name])
      #expect(result.value?.adoption.allSatisfy { $0.mode == .shadow && !$0.mayTerminate } == true)
      #expect(library.ruleNames == Self.names)
    }
  }
}
