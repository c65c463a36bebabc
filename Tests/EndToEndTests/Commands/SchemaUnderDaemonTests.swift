import Control
import JSONLines
import Linux
import TestSupport
import Testing

/// Compares real output with docs/schemas: a key or a code that isn't described there fails the
/// test.
@Suite("JSON output and its schemas") struct SchemaUnderDaemonTests {
  private static let workers = """
    policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
    workers:
      front: { command: "sh -c 'echo one; echo two; exec sleep 700'" }
      asleep: { command: sleep 701 }
      deep: { command: sleep 702 }
      failed: { command: "sh -c 'echo no; exit 3'", restart: { when: always, backoff: { initial: \
    1h } } }
      stopped: { command: sleep 703, autostart: false }

    """

  /// Each line that a verb prints.
  private func documents(
    _ arguments: [String], _ daemon: TestDaemon, code: Int32 = 0
  ) throws -> [JSON] {
    let outcome = try daemon.enter(arguments + ["--json"])
    #expect(outcome.code == code, "\(arguments): \(outcome)")
    return try Self.lines(of: outcome.output)
  }

  private static func lines(of output: String) throws -> [JSON] {
    try output.split(separator: "\n").map {
      try #require(JSON(Array($0.utf8)), "\($0)")
    }
  }

  private func check(_ documents: [JSON], _ name: String, _ arguments: [String]) throws {
    let schema = try DocumentSchema(name)
    #expect(!documents.isEmpty, "\(arguments)")
    for document in documents {
      let problems = try schema.problems(of: document)
      #expect(problems == [], "\(arguments)")
    }
  }

  @Test func `The JSON of reading verbs matches the schemas for workers in every state`() throws {
    let daemon = try TestDaemon(Self.workers)
    #expect(
      try eventually {
        try ["front", "asleep", "deep"].allSatisfy { try daemon.worker($0).pid != nil }
          && daemon.worker("failed").restartsInSeconds != nil
      })
    try daemon.done("foreground", "front")
    try daemon.done("suspend", "asleep")
    try daemon.done("suspend", "deep")
    try daemon.done("hibernate", "deep")
    let host = try WrapHost(
      options: ["--idle-after", "1h", "--hibernate-after", "1h", "--socket", daemon.socket])
    _ = try host.ask("sum")
    let wrapped = host.name()
    #expect(try eventually { (try? daemon.worker(wrapped))?.wrapper != nil })
    let names = ["front", "asleep", "deep", "failed", "stopped", wrapped]
    let states = try names.map { try daemon.worker($0).state }
    #expect(
      states == [
        "foreground", "suspended", "hibernated", "terminated", "terminated", "foreground",
      ])
    var looks: [(String, [String])] = [
      ("ps", ["ps"]), ("status", ["status"]), ("explain-next", ["explain", "--next"]),
      ("explain-savings", ["explain", "--savings"]),
      ("events", ["events", "-n", "all"]), ("report", ["report"]), ("jetsam", ["jetsam"]),
      ("logs", ["logs", "front"]), ("top", ["top", "--count", "2", "--delay", "100ms"]),
    ]
    for name in names {
      looks += [("status-worker", ["status", name]), ("explain", ["explain", name])]
      looks.append(("status-worker", ["status", "--verbose", name]))
      looks.append(("footprint-maps", ["footprint", name]))
    }
    for (schema, arguments) in looks {
      try check(try documents(arguments, daemon), schema, arguments)
    }
    let status = try documents(["status", "-v", "front"], daemon).first
    let maps = try documents(["footprint", "front"], daemon).first
    #expect(status?["dirtyMemory"]?["worker"]?.text == "front" && maps?["worker"]?.text == "front")
    #expect(try documents(["status", "front"], daemon).first?["dirtyMemory"] == nil)
    #expect(
      try eventually {
        try documents(["logs", "front"], daemon).map { $0["text"]?.text } == ["one", "two"]
      })
    #expect(try documents(["top", "--count", "2", "--delay", "100ms"], daemon).count == 2)
  }

  /// What a verb that needs no daemon prints.
  private func run(_ arguments: [String], in scratch: Scratch, code: Int32 = 0) throws -> [JSON] {
    let outcome = try Command.dormouse(arguments + ["--json"]).run(in: scratch)
    #expect(outcome.code == code, "\(arguments): \(outcome)")
    return try Self.lines(of: outcome.output)
  }

  /// `OutcomeTests` has the verbs that change workers.
  @Test func `The JSON of recover, policy check and import matches the schemas`() throws {
    let daemon = try TestDaemon(Self.workers)
    let scratch = daemon.scratch
    let recover = ["recover", "--state-directory", daemon.state]
    try check(try run(recover, in: scratch), "outcome", recover)
    let bad = try scratch.write("bad.yaml", "wokers: {}\n")
    let broken = try run(
      ["policy", "check", daemon.configuration, bad], in: scratch, code: 65)
    try check(broken, "policy-check", ["policy", "check"])
    #expect(broken.first?["code"]?.text == "invalid")
    #expect(broken.first?["files"]?.elements?.map { $0["code"]?.text } == ["valid", "invalid"])
    #expect((broken.first?["diagnostics"]?.elements?.count ?? 0) > 0)
    let procfile = try scratch.write("Procfile", "web: sleep 700\n")
    let imported = try run(["import", procfile], in: scratch)
    try check(imported, "import", ["import"])
    #expect(imported.first?["configuration"]?.text?.contains("sleep") == true)
  }

  @Test("The JSON of verbs print of policies, journals and footprints is what the schemas say")
  func comparisons() throws {
    let daemon = try TestDaemon(Self.workers)
    #expect(try eventually { try daemon.worker("deep").pid != nil })
    try daemon.done("hibernate", "deep")
    try daemon.done("wake", "deep")
    let recording = "\(daemon.scratch.path)/front.footprint"
    let socket = ["--socket", daemon.socket]
    // The journal has a second.
    #expect(try eventually { try daemon.enter(["simulate", "--journal", "--json"]).code == 0 })
    let looks: [(String, [String], Int32)] = [
      ("policy-list", ["policy", "list"] + socket, 0),
      ("policy-show", ["policy", "show"] + socket, 0),
      ("policy-show", ["policy", "show", "--worker", "deep"] + socket, 0),
      ("policy-show", ["policy", "show", daemon.configuration], 0),
      ("policy-diff", ["policy", "diff", "ios-5", "server"], 1),
      ("policy-diff", ["policy", "diff", "server", "server"], 0),
      ("replay", ["replay"] + socket, 0),
      ("replay", ["replay", "--policy", "server"] + socket, 0),
      ("replay", ["replay", "--policy", "server,android"] + socket, 0),
      ("simulate", ["simulate", "--workers", "20", "--hours", "1"], 0),
      ("simulate", ["simulate", "--journal", "--policy", "server"] + socket, 0),
      ("policy-suggest", ["policy", "suggest", "--min-history", "1s"] + socket, 0),
      (
        "footprint-show",
        ["footprint", "record", "front", "--for", "300ms", "--warn-at", "100ms", "-o", recording]
          + socket, 0
      ),
      ("footprint-show", ["footprint", "show", recording], 0),
      ("footprint-compare", ["footprint", "compare", recording, recording], 0),
    ]
    for (schema, arguments, code) in looks {
      let documents = try run(arguments, in: daemon.scratch, code: code)
      #expect(documents.count == 1, "\(arguments)")
      try check(documents, schema, arguments)
    }
  }

  @Test("What `bench` matches its schema")
  func bench() throws {
    let scratch = try Scratch()
    let outcome = try Command.dormouse([
      "bench", "--rounds", "1", "--json", "--state-directory", "\(scratch.path)/state", "--",
      "sleep", "700",
    ]).run(in: scratch, limit: .seconds(150))
    // 69: hibernation is impossible on this machine; the rest was measured.
    #expect(outcome.code == 0 || outcome.code == 69, "\(outcome)")
    try check(try Self.lines(of: outcome.output), "bench", ["bench"])
  }

  @Test("`doctor` reports the daemon's abilities and the shell's differences, or the shell's alone")
  func doctor() throws {
    // The daemon has no cgroups here. The shell may have some: its environment has no
    // DORMOUSE_CGROUP.
    let daemon = try TestDaemon(Self.workers)
    #expect(try eventually { try daemon.worker("deep").pid != nil })
    try daemon.done("hibernate", "deep")
    let arguments = ["doctor", "--state-directory", "\(daemon.scratch.path)/own"]
    let asked = try #require(try documents(arguments, daemon).first)
    try check([asked], "doctor", arguments)
    #expect(asked["askedOf"]?.text == "daemon")
    #expect(asked["daemon"]?["pid"]?.integer == Int64(daemon.pid))
    #expect(asked["daemon"]?["freezer"]?["code"]?.text == "sigstop")
    #expect(asked["daemon"]?["hibernated"]?.integer == 1)
    func result(_ report: JSON?, _ id: String) -> String? {
      report?["checks"]?.elements?.first { $0["id"]?.text == id }?["result"]?.text
    }
    #expect(result(asked, "cgroup") == "missing")
    let differences = asked["differences"]?.elements?.compactMap(\.text) ?? []
    #expect(differences.contains("cgroup") == (result(asked["shell"], "cgroup") != "missing"))
    // The check has the same id in both reports; in the daemon's it names the daemon's own
    // directory.
    let directoryCheck = asked["checks"]?.elements?.first { $0["id"]?.text == "state-directory" }
    #expect(directoryCheck?["found"]?.text?.contains(daemon.state) == true)
    let text = try daemon.done("doctor")
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(
      lines.count <= 26 && lines.first?.hasPrefix("Hibernation works here") == true, "\(text)")
    #expect(text.contains("asked of the running daemon (pid \(daemon.pid))"))
    // The daemon still answers, and its workers are unchanged.
    #expect(try daemon.worker("deep").state == "hibernated")

    let shell = try #require(try documents(arguments + ["--shell"], daemon).first)
    try check([shell], "doctor", arguments)
    #expect(shell["askedOf"]?.text == "shell" && shell["daemon"] == nil)
    try daemon.done("shutdown")
    _ = try daemon.waitForEnd()
    let alone = try #require(try documents(arguments, daemon).first)
    #expect(alone["askedOf"]?.text == "shell" && alone["shell"] == nil)
  }

  @Test("Every verb that prints a result has --json, and docs/json.md names its schema")
  func everyVerb() throws {
    let scratch = try Scratch()
    let rows = try SourceTree.text("docs/json.md").split(separator: "\n").filter {
      $0.hasPrefix("| `") && $0.contains("(schemas/")
    }
    let outcome = try Command.dormouse(["--experimental-dump-help"]).run(in: scratch)
    let root = try #require(JSON(Array(outcome.output.utf8))?["command"])
    // These run a program, print what is meant for a program as it is (a schema, a script), or
    // write a file.
    let others: Set = [
      "daemon", "dashboard", "up", "down", "attach", "wrap", "policy schema", "completions",
      "metrics", "help", "init",
    ]
    var count = 0
    func visit(_ command: JSON, _ path: String) {
      for each in command["subcommands"]?.elements ?? [] where each["shouldDisplay"] != .bool(false)
      {
        let name = (path.isEmpty ? "" : path + " ") + (each["commandName"]?.text ?? "?")
        if name == "help" { continue }
        if each["subcommands"]?.elements?.isEmpty == false {
          visit(each, name)
          continue
        }
        count += 1
        let options = (each["arguments"]?.elements ?? []).flatMap {
          ($0["names"]?.elements ?? []).compactMap { $0["name"]?.text }
        }
        #expect(options.contains("json") != others.contains(name), "\(name): \(options)")
        let isListed = rows.contains { $0.contains("`\(name)`") || $0.contains("`\(name) ") }
        #expect(isListed || others.contains(name), "\(name)")
      }
    }
    visit(root, "")
    #expect(count > 30)
  }
}
