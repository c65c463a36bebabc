import Glibc
import Linux
import Policy
import PolicyFile
import Testing

@testable import Daemon

/// A process like the test's own, with these properties for rules.
private func observed(
  _ name: String = "node", _ command: String = "node /x/tsserver.js",
  age: Duration = .seconds(60), _ footprint: ByteCount = .megabytes(10)
) throws -> ProcessObservation {
  var stat = try ProcessStat.read(getpid())
  stat.name = name
  let process = ProcessObservation(stat, now: Instant(nanoseconds: stat.started) + age)
  process.command = command
  process.executable = "/usr/bin/node"
  process.user = 1000
  process.cgroup = "/user.slice/user@1000.service/app.slice/vim.scope"
  process.footprint = footprint
  return process
}

private func unread() throws -> ProcessObservation {
  var stat = try ProcessStat.read(getpid())
  stat.name = "node"
  return ProcessObservation(stat, now: EventLoop.now)
}

/// The properties that were read of a process for which none was given.
private func read(_ process: ProcessObservation) -> [String] {
  Mirror(reflecting: process).children.compactMap { child in
    guard let label = child.label, label.hasPrefix("$__lazy_storage_$_"),
      Mirror(reflecting: child.value).children.first != nil
    else { return nil }
    return String(label.dropFirst("$__lazy_storage_$_".count))
  }
}

@Suite struct `Processes that rules choose` {
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
    _ rules: [AdoptionRule], _ process: ProcessObservation, isAdopted: Bool = false
  ) -> RuleScan.Standing {
    RuleMatching(rules: rules, users: [.me: 1000, .name("ada"): 1001])
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
  func `Each key is compared with its own fact`(key: String, value: String, matches: Bool) throws {
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
    #expect((Self.choose([rule], try observed()) == .matched(0, .ready)) == matches)
  }

  @Test func `All keys of a pattern have to fit, and of several patterns one`() throws {
    var rule = Self.rule {
      $0.name = [Glob("node")]
      $0.command = [Glob("*gopls*")]
    }
    #expect(Self.choose([rule], try observed()) == .unmatched)
    var other = ProcessPattern()
    other.command = [Glob("node *")]
    rule.matches.append(other)
    #expect(Self.choose([rule], try observed()) == .matched(0, .ready))
  }

  @Test func `The first rule that matches decides, also on a process that is too young`() throws {
    let young = Self.rule("a") {
      $0.name = [Glob("node")]
      $0.olderThan = .seconds(90)
    }
    let any = Self.rule("b") { $0.name = [Glob("*")] }
    #expect(
      Self.choose([young, any], try observed())
        == .matched(0, .tooYoung(.seconds(30))))
    #expect(Self.choose([any, young], try observed()) == .matched(0, .ready))
  }

  @Test func `A process that is too small matches when it has grown`() throws {
    let rule = Self.rule {
      $0.name = [Glob("node")]
      $0.minFootprint = .megabytes(64)
    }
    let process = try observed()
    #expect(
      Self.choose([rule], process)
        == .matched(0, .tooSmall(.megabytes(10), minimum: .megabytes(64))))
    process.footprint = .megabytes(64)
    #expect(Self.choose([rule], process) == .matched(0, .ready))
    process.footprint = nil
    #expect(
      Self.choose([rule], process) == .matched(0, .tooSmall(nil, minimum: .megabytes(64))))
  }

  @Test func `A process that an exception matches belongs to the next rule`() throws {
    var tests = ProcessPattern()
    tests.command = [Glob("*tsserver*")]
    let first = Self.rule("a", except: [tests]) { $0.name = [Glob("node")] }
    let second = Self.rule("b") { $0.name = [Glob("node")] }
    #expect(Self.choose([first, second], try observed()) == .matched(1, .ready))
  }

  @Test func `What may not be read matches no pattern`() throws {
    let process = try observed()
    (process.command, process.executable, process.user, process.cgroup) = (nil, nil, nil, nil)
    for rule in [
      Self.rule { $0.command = [Glob("*")] }, Self.rule { $0.executable = [Glob("*")] },
      Self.rule { $0.cgroup = [Glob("*")] }, Self.rule { $0.unit = [Glob("*")] },
      Self.rule { $0.user = .me },
    ] { #expect(Self.choose([rule], process) == .unmatched) }
  }

  @Test func `Only what a rule names is read, up to the first key that doesn't fit`() throws {
    let process = try unread()
    let rule = Self.rule {
      $0.name = [Glob("gopls")]
      $0.command = [Glob("*")]
    }
    #expect(Self.choose([rule], process) == .unmatched && read(process) == [])
    _ = Self.choose([Self.rule { $0.name = [Glob("node")] }], process)
    #expect(read(process) == [])
    _ = Self.choose([Self.rule { $0.unit = [Glob("*")] }], process)
    #expect(read(process) == ["cgroup"])
  }

  @Test func `Age and footprint of a worker that is adopted already aren't asked for`() throws {
    let rule = Self.rule {
      $0.name = [Glob("node")]
      $0.olderThan = .seconds(1000)
      $0.minFootprint = .gigabytes(1)
    }
    let process = try unread()
    #expect(Self.choose([rule], process, isAdopted: true) == .matched(0, .ready))
    #expect(read(process) == [])
  }

  static let units: [(String, String?)] = [
    ("/system.slice/redis.service", "redis.service"), ("/", nil), ("/user.slice", nil),
    ("/user.slice/user@1.service/app.slice/a.scope/b", "a.scope"), ("/docker/0123", nil),
  ]

  @Test(arguments: units)
  func `A process's unit is the innermost service or scope`(path: String, unit: String?) throws {
    #expect(RuleMatching.unit(ofGroup: path) == unit)
  }

  static let commands: [(String, String, String)] = [
    ("tsserver", "node", "/usr/bin/node /w/node_modules/typescript/lib/tsserver.js --useNodeIpc"),
    ("rust-analyzer", "rust-analyzer", "rust-analyzer"), ("gopls", "gopls", "gopls -mode=stdio"),
    ("pyright", "node", "node /x/pyright/langserver.index.js --stdio"),
    (
      "pyright", "node",
      "node /h/.vscode/extensions/ms-python.vscode-pylance-2026.1.1/dist/server.bundle.js "
        + "--node-ipc"
    ),
    (
      "vscode-server", "node",
      "/h/.vscode-server/bin/c/node /h/.vscode-server/bin/c/out/bootstrap-fork "
        + "--type=extensionHost --uriTransformerPath"
    ),
    ("chrome", "chrome", "/opt/google/chrome/chrome --type=renderer --crashpad-handler-pid=7"),
  ]

  @Test(arguments: commands)
  func `A shipped rule matches the command that its program is started with`(
    rule: String, name: String, command: String
  ) throws {
    let library = PolicyLibrary(directories: ["/nonexistent"])
    let all = library.ruleNames.map { "  - { rules: \($0) }\n" }.joined()
    let result = ConfigurationFile.parse(
      text: "adopt:\n\(all)", file: "dormouse.yaml", library: library, environment: [:])
    let rules = try #require(result.value).adoption
    let matching = RuleMatching(rules: rules, users: [.me: 1000])
    let index = try #require(rules.firstIndex { $0.name == rule })
    let process = try observed(name, command, age: .seconds(100_000), .gigabytes(1))
    #expect(matching.choose(process) == .matched(index, .ready))
    let others = [
      "bash", "node /h/.vscode-server/bin/c/out/bootstrap-fork --type=ptyHost",
      "/opt/google/chrome/chrome --type=gpu-process",
    ]
    for other in others {
      #expect(matching.choose(try observed("bash", other)) == .unmatched, "\(other)")
    }
  }
}

@Suite struct `Programs on a terminal` {
  private func refusal(
    readsTerminal: Bool = false,
    _ change: (_ stat: inout ProcessStat, _ parent: inout ProcessStat) -> Void = { _, _ in }
  ) throws -> String? {
    // This is a language server of an editor that runs in a terminal.
    var stat = try ProcessStat.read(getpid())
    (stat.pid, stat.terminal, stat.session, stat.processGroup) = (30, 34816, 10, 20)
    var parent = stat
    parent.pid = 20
    change(&stat, &parent)
    return stat.terminalRefusal(parent: parent, readsTerminal: readsTerminal)
  }

  @Test func `A process in its parent's process group that reads no terminal may be stopped`()
    throws
  {
    #expect(try refusal() == nil)
  }

  @Test func `A job of a shell, the leader of a session and a reader of a terminal are refused`()
    throws
  {
    #expect(try refusal { $1.processGroup = 10 } == "it is a job of a shell on a terminal")
    #expect(try refusal { stat, _ in stat.pid = 10 } == "it leads the session of a terminal")
    #expect(try refusal(readsTerminal: true) == "it reads from a terminal")
  }

  @Test func `Without a controlling terminal nothing is refused`() throws {
    let refusal = try refusal(readsTerminal: true) { stat, parent in
      (stat.terminal, stat.pid, parent.processGroup) = (0, 10, 1)
    }
    #expect(refusal == nil)
  }
}
