import Glibc
import Linux
import TestSupport
import Testing

@testable import Integrate

@Suite("Hosts' files") struct IntegrationTests {
  private static let sleepers = #"{"mcpServers": {"s": {"command": "sleep", "args": ["700"]}}}"#
  private static let wrapped =
    #"{"mcpServers": {"s": {"command": "/usr/bin/dormouse", "args": ["wrap", "--", "sleep", "#
    + #""700"]}}}"#

  @Test("A second run changes nothing, and undoing gives the same bytes and removes the copy")
  func idempotent() throws {
    let home = try IntegrateHome([".cursor/mcp.json": Self.sleepers])
    #expect(home.change(.cursor).first?.isChanged == true)
    #expect(try home.read(".cursor/mcp.json") == Self.wrapped)
    let copies = "\(home.scratch.path)/state/integrate"
    let copy = try #require(try listDirectory(copies).first)
    #expect(copy.hasSuffix("%2F.cursor%2Fmcp.json"))
    #expect(try readText("\(copies)/\(copy)") == Self.sleepers)
    #expect(try readStatus(of: "\(copies)/\(copy)").st_mode & 0o777 == 0o600)
    let status = try readStatus(of: "\(home.scratch.path)/.cursor/mcp.json")
    let second = home.change(.cursor)
    #expect(second.first?.isChanged == false && second.first?.servers.first?.state == .wrapped)
    #expect(try readStatus(of: "\(home.scratch.path)/.cursor/mcp.json").isSameFile(as: status))
    #expect(home.change(.cursor, .unwrap).first?.isChanged == true)
    #expect(try home.read(".cursor/mcp.json") == Self.sleepers)
    #expect(try listDirectory(copies).isEmpty)
    #expect(home.change(.cursor, .unwrap).first?.isChanged == false)
  }

  @Test("What was added to a file later stays when it is undone, also without the copy")
  func changedSince() throws {
    for hasCopy in [true, false] {
      let home = try IntegrateHome([
        ".cursor/mcp.json":
          #"{"mcpServers": {"a": {"command": "sleep"}, "b": {"command": "true", "args": []}}}"#
      ])
      home.change(.cursor)
      let changed = try home.read(".cursor/mcp.json").replacing(
        #"{"mcpServers": {"#, with: #"{ "new": 1, "mcpServers": {"c": {"command": "false"}, "#)
      try home.scratch.write(".cursor/mcp.json", changed)
      if !hasCopy { Scratch.remove("\(home.scratch.path)/state") }
      home.change(.cursor, .unwrap)
      let list = hasCopy ? #", "args": []"# : ""
      #expect(
        try home.read(".cursor/mcp.json")
          == #"{ "new": 1, "mcpServers": {"c": {"command": "false"}, "a": {"command": "sleep"}, "#
          + #""b": {"command": "true"\#(list)}}}"#
      )
    }
  }

  @Test("A command that was wrapped by hand before stays wrapped when the others are undone")
  func byHand() throws {
    let text = #"""
      {"mcpServers": {
        "mine": {"command": "/usr/bin/env", "args": []},
        "short": {"command": "dormouse", "args": ["wrap", "sleep"]},
        "own": {"command": "dormouse", "args": ["wrap", "--", "sleep", "700"]}
      }}
      """#
    let home = try IntegrateHome([".cursor/mcp.json": text])
    home.change(.cursor)
    #expect(
      home.inspect(.cursor).flatMap(\.servers).map(\.state) == [.wrapped, .wrapped, .wrapped])
    let undone = home.change(.cursor, .unwrap)
    #expect(undone.first?.servers.map(\.refusal) == [nil, .unclear, .wrappedBefore])
    #expect(try home.read(".cursor/mcp.json") == text)
  }

  @Test func `A link stays a link, and the file behind it keeps its mode`() throws {
    let home = try IntegrateHome(["dotfiles/mcp.json": Self.sleepers, ".cursor/other": ""])
    let (file, link) = ("\(home.scratch.path)/dotfiles/mcp.json", ".cursor/mcp.json")
    #expect(symlink("../dotfiles/mcp.json", "\(home.scratch.path)/\(link)") == 0)
    #expect(chmod(file, 0o640) == 0)
    #expect(home.change(.cursor).first?.isChanged == true)
    #expect(readLink("\(home.scratch.path)/\(link)") == "../dotfiles/mcp.json")
    #expect(try readText(file) == Self.wrapped)
    #expect(try readStatus(of: file).st_mode & 0o7777 == 0o640)
    #expect(try listDirectory("\(home.scratch.path)/dotfiles") == ["mcp.json"])
  }

  @Test func `A file that is read-only, has hard links or can't be parsed isn't changed`() throws {
    let home = try IntegrateHome([".cursor/mcp.json": Self.sleepers])
    let path = "\(home.scratch.path)/.cursor/mcp.json"
    #expect(chmod(path, 0o400) == 0)
    #expect(home.change(.cursor).first?.problem == .readOnly)
    #expect(chmod(path, 0o600) == 0 && Glibc.link(path, path + ".2") == 0)
    #expect(home.change(.cursor).first?.problem == .hardLinks(2))
    #expect(unlink(path + ".2") == 0)
    #expect(try home.read(".cursor/mcp.json") == Self.sleepers)
    try home.scratch.write(".cursor/mcp.json", "{\n  \"mcpServers\": {,}}")
    var integration = home.integration
    integration.context.directory = home.scratch.path
    #expect(integration.inspect([.cursor], for: .wrap).count == 1)
    let problem = home.change(.cursor).first?.problem
    #expect(problem?.sentence("f").hasPrefix("f:2:18: a key in quotes") == true)
    #expect(problem?.exit == .badConfiguration)
  }

  @Test("A change that would damage a file, or change anything else in it, is refused")
  func damage() throws {
    let document = try ConfigDocument(
      Array(#"{"mcpServers": {"s": {"command": "x", "args": ["y"]}}, "z": 1}"#.utf8), .json)
    let locations = MCPServers.find(at: ["mcpServers"], in: document.root)
    let good = try WrapEdits(document: document, wrapPrefix: WrapPrefix(program: "/bin/dormouse"))
      .edits(locations[0])
    #expect(try Integration.verified(good, locations, in: document).root["z"] != nil)
    let z = try #require(document.root["z"]).range
    let y = try #require(document.root[["mcpServers", "s", "args"]]?.list?[0]).range
    for bad in [
      TextEdit(z, "2".utf8), TextEdit(z, "".utf8), TextEdit(y, "\"n\"".utf8),
      TextEdit(0..<0, "{".utf8),
    ] {
      #expect(throws: FileProblem.otherMeaning) {
        try Integration.verified(good + [bad], locations, in: document)
      }
    }
    #expect(throws: FileProblem.otherMeaning) {
      try Integration.verified([TextEdit(z, "1".utf8)], locations, in: document)
    }
  }

  @Test("A file in which nothing would change may be read-only, and undoing needs no reasons")
  func nothingToChange() throws {
    let text = #"{"mcpServers": {"r": {"url": "http://x"}, "lost": {"command": "/nowhere/x"}}}"#
    let home = try IntegrateHome([".cursor/mcp.json": text])
    #expect(chmod("\(home.scratch.path)/.cursor/mcp.json", 0o400) == 0)
    for change in [Integration.Change.wrap, .unwrap] {
      let file = try #require(home.change(.cursor, change).first)
      #expect(file.problem == nil && !file.isChanged)
      let codes = file.servers.map { $0.refusal?.code }
      #expect(codes == (change == .wrap ? ["remote", "missing_program"] : [nil, nil]))
    }
    #expect(home.inspect(.cursor).first?.problem == .readOnly)
  }

  @Test("A file of another user isn't changed", .enabled(if: getuid() == 0, "chown takes root"))
  func otherOwner() throws {
    let home = try IntegrateHome([".cursor/mcp.json": Self.sleepers])
    #expect(chown("\(home.scratch.path)/.cursor/mcp.json", 65534, 65534) == 0)
    #expect(home.change(.cursor).first?.problem == .owner(65534))
    #expect(try home.read(".cursor/mcp.json") == Self.sleepers)
  }

  @Test func `A file that a host writes at the same time isn't replaced`() throws {
    let home = try IntegrateHome([".cursor/mcp.json": Self.sleepers])
    var file = try #require(home.integration.inspect([.cursor], for: .wrap).first)
    try home.scratch.write(".cursor/mcp.json", Self.sleepers + "\n")
    home.integration.apply(&file)
    #expect(file.problem == .changedMeanwhile)
    #expect(try home.read(".cursor/mcp.json") == Self.sleepers + "\n")
    #expect(try listDirectory("\(home.scratch.path)/.cursor") == ["mcp.json"])
  }

  @Test("Each kind of command that can't sleep in a useful way stays, with its reason")
  func refusals() throws {
    let home = try IntegrateHome([
      ".cursor/mcp.json": #"""
      {"mcpServers": {
        "remote": {"url": "https://example.org/mcp"},
        "off": {"command": "sleep", "disabled": true},
        "container": {"command": "/usr/bin/docker", "args": ["run", "-i", "x"]},
        "root": {"command": "sudo", "args": ["x"]},
        "tilde": {"command": "~/bin/x"},
        "missing": {"command": "no-such-program-700"},
        "lost": {"command": "/nowhere/x"},
        "number": {"command": "sleep", "args": [700]},
        "nothing": {},
        "variable": {"command": "${HOME}/bin/x"},
        "path": {"command": "known-elsewhere", "env": {"PATH": "/opt/x"}},
        "fine": {"command": "sleep"}
      }}
      """#
    ])
    #expect(
      home.states(.cursor) == [
        "remote": "remote", "off": "disabled", "container": "client_of_another_process",
        "root": "other_user", "tilde": "tilde", "missing": "missing_program",
        "lost": "missing_program", "number": "not_text", "nothing": "no_command",
        "variable": "not_wrapped", "path": "not_wrapped", "fine": "not_wrapped",
      ])
    home.change(.cursor)
    let text = try home.read(".cursor/mcp.json")
    #expect(
      text.contains(
        #""variable": {"command": "/usr/bin/dormouse", "args": ["wrap", "--", "${HOME}/bin/x"]}"#))
    #expect(text.contains(#""missing": {"command": "no-such-program-700"}"#))
  }

  @Test("Servers that are wrapped with other options are reported only if options are given")
  func options() throws {
    var home = try IntegrateHome([".cursor/mcp.json": Self.sleepers, "bin/dormouse": ""])
    home.wrapPrefix = WrapPrefix(
      program: "\(home.scratch.path)/bin/dormouse", options: ["--idle-after", "10m"])
    home.change(.cursor)
    #expect(
      try home.read(".cursor/mcp.json").contains(
        #"["wrap", "--idle-after", "10m", "--", "sleep", "700"]"#))
    home.wrapPrefix.options = []
    #expect(home.change(.cursor).first?.servers.first?.refusal == nil)
    var integration = home.integration
    integration.wrapPrefix.options = ["--idle-after", "1m"]
    integration.hasGivenOptions = true
    let refusal = integration.inspect([.cursor], for: .wrap).first?.servers.first?.refusal
    #expect(refusal == .wrappedOtherwise)
    #expect(unlink(home.wrapPrefix.program) == 0)
    #expect(home.states(.cursor) == ["s": "lost_wrapper"])
  }

  @Test("Servers are named as in the configuration where their command doesn't show that")
  func names() throws {
    let text =
      #"{"mcpServers": {"my files": {"command": "npx", "args": ["x"]}, "sleep": {"command": "#
      + #""/bin/sleep"}}}"#
    var home = try IntegrateHome([".cursor/mcp.json": text, "bin/dormouse": "", "bin/npx": ""])
    chmod("\(home.scratch.path)/bin/npx", 0o755)
    home.environment["PATH"] = "\(home.scratch.path)/bin:/bin"
    home.wrapPrefix = WrapPrefix(program: "\(home.scratch.path)/bin/dormouse", addsOptions: true)
    home.change(.cursor)
    let changed = try home.read(".cursor/mcp.json")
    let named = #"["wrap", "--end-with-host", "--name", "my-files", "--", "npx", "x"]"#
    #expect(changed.contains(named), "\(changed)")
    #expect(changed.contains(#"["wrap", "--end-with-host", "--", "/bin/sleep"]"#), "\(changed)")
    // The servers count as wrapped with the same options.
    var integration = home.integration
    integration.hasGivenOptions = true
    let refusals = integration.inspect([.cursor], for: .wrap).flatMap(\.servers).map(\.refusal)
    #expect(refusals == [nil, nil])
    home.change(.cursor, .unwrap)
    #expect(try home.read(".cursor/mcp.json") == text)
  }

  private static let many = 20_000

  @Test("A file with 20,000 servers is changed like a small one, in JSON and in TOML")
  func many() throws {
    let numbers = 0..<Self.many
    let json = numbers.map { "\"s\($0)\":{\"command\":\"/bin/sh\"}" }.joined(separator: ",\n")
    let toml = numbers.map { "[mcp_servers.s\($0)]\ncommand = \"/bin/sh\"\n" }.joined()
    var home = try IntegrateHome([
      ".cursor/mcp.json": "{\"mcpServers\":{\n\(json)\n}}", ".codex/config.toml": toml,
    ])
    home.wrapPrefix = WrapPrefix(program: "/d")
    for host in [IntegratedHost.cursor, .codex] {
      let file = try #require(home.change(host).first)
      #expect(file.isChanged && file.problem == nil)
      #expect(file.servers.count { $0.state == .newlyWrapped } == Self.many)
      #expect(file.servers.last?.name == "s\(Self.many - 1)")
      let lines = file.difference
      #expect(lines.first?.hasPrefix("@@ -1,") == true)
      #expect(lines.count { $0.hasPrefix("+") } >= Self.many)
    }
    let changed = try home.read(".cursor/mcp.json")
    let first = #""s0":{"command":"/d","args":["wrap","--","/bin/sh"]},"#
    #expect(changed.hasPrefix("{\"mcpServers\":{\n\(first)\n\"s1\""))
    let document = try ConfigDocument(Array(home.read(".codex/config.toml").utf8), .toml)
    let servers = try #require(document.root["mcp_servers"]?.members)
    #expect(servers.count == Self.many)
    #expect(servers.allSatisfy { $0.value["args"]?.list?.last?.text == "/bin/sh" })
  }

  @Test func `The changes are shown as the lines of a diff, with one line around them`() throws {
    let home = try IntegrateHome([
      ".cursor/mcp.json": """
      {
        "first": 1,
        "mcpServers": {
          "s": {
            "command": "sleep",
            "args": [
              "700"
            ]
          }
        }
      }

      """
    ])
    let file = try #require(home.integration.inspect([.cursor], for: .wrap).first)
    #expect(
      file.difference == [
        "@@ -4,5 +4,6 @@", "     \"s\": {", "-      \"command\": \"sleep\",",
        "+      \"command\": \"/usr/bin/dormouse\",", "       \"args\": [",
        "+        \"wrap\", \"--\", \"sleep\",", "         \"700\"", "       ]",
      ])
  }
}
