import Testing

@testable import Policy

@Suite struct `Rules of adoption` {
  /// Counts what is asked of it.
  private final class Observed: ObservedProcess {
    var name = "node"
    var words: String? = "node /x/tsserver.js"
    var path: String? = "/usr/bin/node"
    var owner: UInt32? = 1000
    var group: String? = "/user.slice/user@1000.service/app.slice/vim.scope"
    var age = Duration.seconds(60)
    var size: ByteCount? = .megabytes(10)
    private(set) var asked: [String] = []

    private func ask<Value>(_ what: String, _ value: Value) -> Value {
      asked.append(what)
      return value
    }

    var command: String? { ask("command", words) }
    var executable: String? { ask("exe", path) }
    var user: UInt32? { ask("user", owner) }
    var cgroup: String? { ask("cgroup", group) }
    var footprint: ByteCount? { ask("footprint", size) }
  }

  private static func rule(
    _ name: String = "r", except: [ProcessPattern] = [],
    _ change: (inout ProcessPattern) -> Void
  ) -> AdoptionRule {
    var pattern = ProcessPattern()
    change(&pattern)
    var rule = AdoptionRule(name: name, matches: [pattern])
    rule.exceptions = except
    return rule
  }

  private static func choose(
    _ rules: [AdoptionRule], _ process: Observed = Observed(), isAdopted: Bool = false
  ) -> RuleChoice? {
    RuleMatching(rules, users: [.me: 1000, .name("ada"): 1001])
      .choose(process, isAdopted: isAdopted)
  }

  static let keys: [(String, String, Bool)] = [
    ("command", "*/tsserver.js", true), ("command", "tsserver.js", false),
    ("exe", "/usr/*/node", true), ("exe", "node", false), ("name", "nod?", true),
    ("cgroup", "*/app.slice/*", true), ("cgroup", "/system.slice/*", false),
    ("unit", "vim.scope", true), ("unit", "user@*.service", false), ("user", "me", true),
    ("user", "1000", true), ("user", "ada", false), ("user", "no-such-user", false),
  ]

  @Test(arguments: keys)
  func `Each key is compared with its own fact`(key: String, value: String, matches: Bool) {
    let rule = Self.rule { pattern in
      switch key {
      case "command": pattern.command = [Glob("-"), Glob(value)]
      case "exe": pattern.executable = [Glob(value)]
      case "name": pattern.name = [Glob(value)]
      case "cgroup": pattern.cgroup = [Glob(value)]
      case "unit": pattern.unit = [Glob(value)]
      default: pattern.user = ProcessPattern.User(value)
      }
    }
    #expect((Self.choose([rule]) != nil) == matches)
  }

  @Test func `All keys of a pattern have to fit, and of several patterns one`() {
    var rule = Self.rule {
      $0.name = [Glob("node")]
      $0.command = [Glob("*gopls*")]
    }
    #expect(Self.choose([rule]) == nil)
    var other = ProcessPattern()
    other.command = [Glob("node *")]
    rule.matches.append(other)
    #expect(Self.choose([rule]) == RuleChoice(rule: 0, condition: .met))
  }

  @Test func `The first rule that matches decides, even if the process is too young for it`() {
    let young = Self.rule("a") {
      $0.name = [Glob("node")]
      $0.olderThan = .seconds(90)
    }
    let any = Self.rule("b") { $0.name = [Glob("*")] }
    #expect(
      Self.choose([young, any]) == RuleChoice(rule: 0, condition: .tooYoung(for: .seconds(30))))
    #expect(Self.choose([any, young]) == RuleChoice(rule: 0, condition: .met))
  }

  @Test func `A process that is too small matches when it has grown`() {
    let rule = Self.rule {
      $0.name = [Glob("node")]
      $0.minFootprint = .megabytes(64)
    }
    let process = Observed()
    #expect(
      Self.choose([rule], process)?.condition
        == .tooSmall(.megabytes(10), least: .megabytes(64)))
    process.size = .megabytes(64)
    #expect(Self.choose([rule], process)?.condition == .met)
    process.size = nil
    #expect(Self.choose([rule], process)?.condition == .tooSmall(nil, least: .megabytes(64)))
  }

  @Test func `A process that an exception matches belongs to the next rule`() {
    var tests = ProcessPattern()
    tests.command = [Glob("*tsserver*")]
    let first = Self.rule("a", except: [tests]) { $0.name = [Glob("node")] }
    let second = Self.rule("b") { $0.name = [Glob("node")] }
    #expect(Self.choose([first, second])?.rule == 1)
  }

  @Test func `What may not be read matches no pattern`() {
    let process = Observed()
    (process.words, process.path, process.owner, process.group) = (nil, nil, nil, nil)
    for rule in [
      Self.rule { $0.command = [Glob("*")] }, Self.rule { $0.executable = [Glob("*")] },
      Self.rule { $0.cgroup = [Glob("*")] }, Self.rule { $0.unit = [Glob("*")] },
      Self.rule { $0.user = .me },
    ] { #expect(Self.choose([rule], process) == nil) }
  }

  @Test func `Only what a rule names is read, and nothing after the first key that doesn't fit`() {
    let process = Observed()
    let rule = Self.rule {
      $0.name = [Glob("gopls")]
      $0.command = [Glob("*")]
    }
    #expect(Self.choose([rule], process) == nil && process.asked == [])
    _ = Self.choose([Self.rule { $0.name = [Glob("node")] }], process)
    #expect(process.asked == [])
    _ = Self.choose([Self.rule { $0.unit = [Glob("*")] }], process)
    #expect(process.asked == ["cgroup"])
  }

  @Test func `Age and footprint of a worker that is adopted already aren't asked for`() {
    let rule = Self.rule {
      $0.name = [Glob("node")]
      $0.olderThan = .seconds(1000)
      $0.minFootprint = .gigabytes(1)
    }
    let process = Observed()
    #expect(Self.choose([rule], process, isAdopted: true)?.condition == .met)
    #expect(process.asked == [])
  }

  static let units: [(String, String?)] = [
    ("/system.slice/redis.service", "redis.service"), ("/", nil), ("/user.slice", nil),
    ("/user.slice/user@1.service/app.slice/a.scope/b", "a.scope"), ("/docker/0123", nil),
  ]

  @Test(arguments: units)
  func `The unit of a process is the innermost service or scope`(path: String, unit: String?) {
    #expect(RuleMatching.unit(ofGroup: path) == unit)
  }

  @Test func `A worker of a rule in shadow mode is in shadow mode, whatever the machine's mode is`()
  {
    var rule = Self.rule { $0.name = [Glob("a")] }
    #expect(rule.mode == .shadow && rule.effectivePolicy.mode == .shadow)
    rule.mode = .manage
    #expect(rule.effectivePolicy.mode == .enforce)
    rule.policy.mode = .shadow
    #expect(rule.effectivePolicy.mode == .shadow)
    #expect(rule.workerName(of: 4711) == "r-4711")
  }

  @Test func `Rules that choose the same have the same text, and others have another`() {
    let one = Self.rule("a") { $0.command = [Glob("x")] }
    var other = Self.rule("b") { $0.command = [Glob("x")] }
    other.limit = 3
    #expect(one.choice == other.choice)
    let changes: [(inout AdoptionRule) -> Void] = [
      { $0.matches[0].name = [Glob("y")] }, { $0.matches[0].olderThan = .seconds(1) },
      { $0.exceptions = $0.matches }, { $0.includesTerminals = true },
      { $0.matches[0].user = .me }, { $0.matches[0].minFootprint = .megabytes(1) },
    ]
    for change in changes {
      var changed = one
      change(&changed)
      #expect(changed.choice != one.choice)
    }
  }
}

@Suite struct `Programs on a terminal` {
  private static func use(
    _ change: (inout TerminalUse) -> Void = { _ in }
  ) -> TerminalUse {
    // A language server of an editor that runs in a terminal.
    var use = TerminalUse(
      pid: 30, terminal: 34816, session: 10, group: 20, parentSession: 10, parentGroup: 20,
      readsTerminal: false)
    change(&use)
    return use
  }

  @Test func `A process in its parent's process group that reads no terminal may be stopped`() {
    #expect(Self.use().refusal == nil)
  }

  @Test func `A job of a shell, the leader of a session and a reader of a terminal are refused`() {
    #expect(Self.use { $0.parentGroup = 10 }.refusal == "it is a job of a shell on a terminal")
    #expect(Self.use { $0.pid = 10 }.refusal == "it leads the session of a terminal")
    #expect(Self.use { $0.readsTerminal = true }.refusal == "it reads from a terminal")
  }

  @Test func `Without a controlling terminal nothing is refused`() {
    let use = Self.use {
      ($0.terminal, $0.pid, $0.parentGroup, $0.readsTerminal) = (0, 10, 1, true)
    }
    #expect(use.refusal == nil)
  }
}
