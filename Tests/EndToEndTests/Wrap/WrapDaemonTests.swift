import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("dormouse wrap, and a daemon") struct WrapDaemonTests {
  @Test(
    "A daemon lists a wrapped program and passes verbs on to its wrapper",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func registers(setting: Setting) throws {
    let daemon = try TestDaemon("", setting: setting)
    let options = ["--idle-after", "1h", "--hibernate-after", "1h", "--socket", daemon.socket]
    let host = try WrapHost(options: options, setting: setting)
    let sum = try host.ask("fill", #"{"megabytes": 8}"#)
    let name = host.name()
    #expect(try eventually { try daemon.json(Listing.self, "ps").workers.map(\.name) == [name] })
    #expect(try daemon.worker(name).state == "foreground")

    try daemon.done("hibernate", name)
    #expect(try daemon.worker(name).state == "hibernated")
    #expect(try host.anonymous(daemon.worker(name).pid ?? 0) < 1024)
    #expect(try host.ask("sum") == sum)
    #expect(try eventually { (try? daemon.worker(name))?.state == "foreground" })
    let report = try daemon.worker(name)
    #expect(report.wrapper == host.pid && report.wakes == 1)
    #expect(try daemon.done("status", name).contains("wrapped by"))
    #expect(try daemon.verb("wake", name + "0").code == CommandExit.unknownWorker.rawValue)

    try daemon.done("stop", name)
    #expect(try host.end() == .signaled(SIGTERM))
    #expect(try eventually { try daemon.json(Listing.self, "ps").workers.isEmpty })
  }

  @Test func `A wrapper works on without its daemon and registers with the next one`() throws {
    let daemon = try TestDaemon("")
    let host = try WrapHost(options: WrapHost.hasty + ["--socket", daemon.socket])
    let sum = try host.ask("fill", #"{"megabytes": 8}"#)
    let name = host.name()
    #expect(try eventually { (try? daemon.worker(name))?.state == "hibernated" })
    try daemon.crash()
    #expect(try host.ask("sum") == sum)
    try daemon.start()
    #expect(try eventually { (try? daemon.worker(name)) != nil })
    // A wrapped program belongs to its host, and stays when the daemon ends.
    try daemon.done("shutdown")
    #expect(try daemon.waitForEnd() == 0)
    #expect(try host.ask("sum") == sum)
  }

  @Test("A wrapped program is asked for memory by its signal or command, also under pressure")
  func shed() throws {
    let daemon = try TestDaemon("")
    let marks = daemon.scratch.uniquePath("marks")
    let idle = ["--idle-after", "1h", "--socket", daemon.socket]
    let signalled = try WrapHost(options: idle + ["--shed-signal", "USR2"])
    try signalled.ask("catch", #"{"signal": \#(SIGUSR2)}"#)
    let command = "test -n \"$HOME\" && echo $DORMOUSE_WORKER_PID >> \(marks)"
    let commanded = try WrapHost(options: idle + ["--shed-command", command])
    let pid = try commanded.serverPid()
    // The daemon's ladder warns each once. If memory were short before, it could be too early.
    #expect(
      try eventually {
        ["foreground", "background"].contains((try? daemon.worker(commanded.name()))?.state)
      })
    try daemon.rewrite(Self.short("critical"))
    try daemon.done("reload")
    #expect(
      try eventually { (try? readText(marks))?.hasPrefix("\(pid)\n") == true },
      "\(daemon.logText)\n\(commanded.diagnostics)")
    for host in [signalled, commanded] {
      let name = host.name()
      #expect(try eventually { (try? daemon.worker(name)) != nil })
      #expect(try daemon.done("warn", name).contains("freed"), "\(host.diagnostics)")
      #expect(try eventually { (try? daemon.worker(name))?.lastShed != nil })
    }
    #expect(try signalled.ask("caught") != "[]")
    let plain = try WrapHost(options: idle)
    #expect(try eventually { (try? daemon.worker(plain.name())) != nil })
    #expect(try daemon.verb("warn", plain.name()).code != 0)
  }

  @Test("A wrapped program is listed with its host, its project, and what its sleep saves")
  func overview() throws {
    let daemon = try TestDaemon("")
    let host = try WrapHost(options: WrapHost.hasty + ["--socket", daemon.socket])
    try host.ask("fill", #"{"megabytes": 12}"#)
    #expect(try eventually { (try? daemon.worker(host.name()))?.state == "hibernated" })
    let worker = try daemon.worker(host.name())
    #expect(worker.directory == host.scratch.path)
    #expect(worker.host?.isEmpty == false)
    let saved = try #require(worker.saved)
    #expect(saved > 12 << 20 && saved + worker.footprint <= worker.peakFootprint)
    let lines = try daemon.done("ps").split(separator: "\n")
    #expect(lines.first?.contains("SAVED") == true, "\(lines)")
    let totals = lines.first { $0.contains(", saved now ") }
    #expect(totals?.contains(" %), images ") == true, "\(lines)")
    try host.ask("sum")
    #expect(try eventually { (try? daemon.worker(host.name()))?.state == "foreground" })
    #expect(try daemon.worker(host.name()).saved == nil)
  }

  /// By the daemon's policy, memory is always short at this level, even if the machine has much
  /// free swap: other tests make some. By the wrappers' own policies it isn't.
  private static func short(_ level: String) -> String {
    let levels =
      level == "critical"
      ? "warning: never, urgent: never, critical: { available_below: 100% }"
      : "warning: { available_below: 100% }, urgent: never, critical: { available_below: 1MB }"
    return "policy_overrides: { pressure: { swap: 0%, \(levels) } }\n"
  }

  private static let sleepy = ["--idle-after", "500ms", "--hibernate-after", "never"]

  @Test(
    "Under pressure a wrapped program is hibernated, and it answers its next request",
    .timeLimit(.minutes(10)),
    arguments: Nightly.one(of: Setting.ofTestUser))
  func hibernatedUnderPressure(setting: Setting) throws {
    let daemon = try TestDaemon(Self.short("warning"), setting: setting)
    let host = try WrapHost(
      options: Self.sleepy + ["--socket", daemon.socket], setting: setting)
    let sum = try host.ask("fill", #"{"megabytes": 8}"#)
    for _ in 0..<2 {
      let name = host.name()
      #expect(try eventually { (try? daemon.worker(name))?.state == "hibernated" })
      #expect(try host.ask("sum") == sum)
    }
    try daemon.waitForLogText("\(host.name()): hibernation requested from its wrapper")
    let explained = try daemon.done("explain", host.name())
    #expect(explained.contains(host.name()), "\(explained)")
    // The worker is listed once.
    #expect(try daemon.json(Listing.self, "ps").workers.count == 1)
  }

  @Test(
    "A wrapped program is terminated for memory only with --may-terminate, and the report lists all"
  )
  func terminatedUnderPressure() throws {
    let daemon = try TestDaemon(
      "policy_overrides: { ladder: { warning: [], urgent: [], "
        + "critical: [terminate suspended] } }\n")
    let spared = try WrapHost(options: Self.sleepy + ["--socket", daemon.socket])
    let sum = try spared.ask("fill", #"{"megabytes": 8}"#)
    #expect(try eventually { (try? daemon.worker(spared.name()))?.state == "suspended" })
    let host = try WrapHost(options: Self.sleepy + ["--may-terminate", "--socket", daemon.socket])
    #expect(try eventually { (try? daemon.worker(host.name()))?.state == "suspended" })
    try daemon.done("pressure", "set", "critical", "--yes")
    #expect(try host.end() == .signaled(SIGTERM))
    #expect(try eventually { try daemon.ask(.jetsam).jetsam != nil })
    let entries = try #require(try daemon.ask(.jetsam).jetsam).workers
    #expect(entries.first { $0.name == host.name() }?.victimBecause != nil, "\(entries)")
    let other = try #require(entries.first { $0.name == spared.name() })
    #expect(other.victimBecause == nil)
    #expect(try spared.ask("sum") == sum)
    #expect(try daemon.verb("status", host.name()).code == CommandExit.unknownWorker.rawValue)
  }
}

/// A real language server, with its real protocol.
@Suite("dormouse wrap, and clangd") struct WrapClangdTests {
  private static let clangd = ["/opt/swift/usr/bin", "/usr/bin", "/usr/local/bin"]
    .map { $0 + "/clangd" }.first { (path: String) in access(path, X_OK) == 0 }

  @Test(.enabled(if: clangd != nil, "clangd isn't installed"))
  func `A wrapped clangd gives the same completion after each hibernation`() throws {
    let host = try WrapHost([
      Self.clangd ?? "", "--log=error", "--background-index=false", "--pch-storage=memory",
    ])
    let text = #"struct Shape { int dormouse_one; int dormouse_two; };\nint main() { Shape s; s. }"#
    let file = "\(host.scratch.path)/main.cpp"
    let document = #""textDocument": {"uri": "file://\#(file)""#
    try ask(
      host, 1, "initialize", #"{"processId": null, "rootUri": null, "capabilities": {}}"#)
    try host.send(raw: #"{"jsonrpc": "2.0", "method": "initialized", "params": {}}"#)
    try host.send(
      raw: #"{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {\#(document), "#
        + #""languageId": "cpp", "version": 1, "text": "\#(text)"}}}"#)
    let position = #"{\#(document)}, "position": {"line": 1, "character": 24}}"#
    func complete(_ id: Int) throws -> String {
      try ask(host, id, "textDocument/completion", position)
    }
    var id = 1
    let isThere = try eventually(within: .seconds(60)) {
      id += 1
      let completions = try complete(id)
      // With its type: before clangd knows types, it completes to the words in the file.
      return completions.contains("dormouse_one") && completions.contains(#""detail":"int""#)
    }
    #expect(isThere)
    let awake = Self.result(try complete(100))
    let pid = try #require(host.status().pid)
    let before = try host.anonymous(pid)
    for round in 1...3 {
      try host.wait(toBe: "hibernated")
      #expect(try host.anonymous(pid) < before / 5)
      #expect(Self.result(try complete(100 + round)) == awake)
    }
    try ask(host, 200, "shutdown", "null")
    try host.send(raw: #"{"jsonrpc": "2.0", "method": "exit"}"#)
    #expect(try host.end() == .exited(0))
    #expect(host.hasLeftNothing())
  }

  /// The answer to a request. Other messages of the server are skipped.
  @discardableResult
  private func ask(
    _ host: WrapHost, _ id: Int, _ method: String, _ parameters: String
  ) throws -> String {
    try host.send(
      raw: #"{"jsonrpc": "2.0", "id": \#(id), "method": "\#(method)", "params": \#(parameters)}"#)
    while true {
      let message = try host.receive()
      if message.contains(#""id":\#(id),"#) { return message }
    }
  }

  private static func result(_ message: String) -> Substring {
    guard let start = message.firstRange(of: #""result":"#) else { return "" }
    return message[start.lowerBound...]
  }
}
