import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Example workers of the worker protocol") struct ProtocolExampleTests {
  enum Language: String, CaseIterable, CustomTestStringConvertible {
    case python, node
    var testDescription: String { rawValue }
    var file: String { self == .python ? "worker.py" : "worker.mjs" }
    var program: String { self == .python ? TestMachine.python : "node" }
    var path: String { "\(TestMachine.root)/Examples/worker-protocol/\(file)" }

    static var installed: [Language] {
      let path = Command(arguments: []).environment["PATH"] ?? ""
      return allCases.filter { resolveExecutable($0.program, path: path) != nil }
    }
  }

  @Test(
    "Each worker of Examples/worker-protocol has at most twenty lines of code",
    arguments: Language.allCases)
  func length(_ language: Language) throws {
    var isInComment = false
    let lines = try readText(language.path).split(separator: "\n").map { line in
      String(line.drop { $0 == " " })
    }
    let code = lines.filter { line in
      let quotes = line.count { $0 == "\"" }
      defer { if line.contains("\"\"\""), quotes < 6 { isInComment.toggle() } }
      return !isInComment && !["#", "//", "\"\"\"", "import "].contains { line.hasPrefix($0) }
    }
    #expect(code.count <= 20, "\(code)")
  }

  @Test(
    "The example worker sheds, sleeps and resumes, and the memory that it freed is measured",
    arguments: Language.installed, Nightly.one(of: Setting.ofTestUser))
  func life(_ language: Language, _ setting: Setting) throws {
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 1h, shed_deadline: 60s }
        hibernate: { after: never, cooldown: 0s, max_footprint: 1GB }
      workers:
        cache:
          command: [\(language.program), \(language.path)]
          environment: { MALLOC_MMAP_THRESHOLD_: "131072" }
          readiness: { notify: true }
      """, setting: setting)
    try daemon.wait("cache", toBe: "foreground")
    #expect(try daemon.done("status", "cache").contains("a cache, in \(language)"))
    let said = try daemon.done("warn", "cache")
    #expect(said.hasPrefix("cache freed "), "\(said)")
    // Its cache is empty before it sleeps, and filled again in the foreground.
    try daemon.done("suspend", "cache")
    let empty = try daemon.currentFootprint("cache")
    try daemon.done("foreground", "cache")
    let isFull = try eventually { try daemon.worker("cache").footprint >= empty + 7 << 20 }
    #expect(isFull, "\(daemon.logText)")
    try daemon.done("suspend", "cache")
    let shed = try #require(try daemon.worker("cache").lastShed?.text)
    #expect(shed.hasPrefix("freed "), "\(shed)")
    #expect(!shed.contains("did not answer"))
    #expect(try daemon.done("explain", "cache").contains(shed))
    let again = try daemon.currentFootprint("cache")
    #expect(again < empty + 2 << 20, "\(empty) → \(again); \(shed)\n\(daemon.logText)")
    try daemon.done("hibernate", "cache")
    try daemon.done("wake", "cache")
    #expect(try daemon.done("warn", "cache").contains("did not answer") == false)
    #expect(try daemon.worker("cache").talk == nil)
    try daemon.done("stop", "cache")
  }

  @Test(
    "The example worker survives the end of its daemon and connects again",
    arguments: Language.installed)
  func daemonGoes(_ language: Language) throws {
    let scratch = try Scratch()
    let path = scratch.uniquePath("socket")
    let listener = try UnixSocket.bound(to: path, .stream)
    guard listen(listener.raw, 8) == 0 else { throw TestFailure("can't listen: \(errno)") }
    var command = Command(arguments: [language.program, language.path])
    command.environment["DORMOUSE_WORKER_SOCKET"] = path
    let error = scratch.uniquePath("err")
    let worker = try command.start(output: scratch.uniquePath("out"), error: error)
    defer {
      kill(worker.pid, SIGKILL)
      _ = try? worker.wait(.seconds(60))
    }
    for round in 1...3 {
      guard try pollDescriptor(listener.raw, for: POLLIN, until: Deadline(in: .seconds(60))) else {
        throw TestFailure("round \(round): it hasn't connected: \(try readText(error))")
      }
      let connection = accept(listener.raw, nil, nil)
      // It has sent a message that was never read, so its next read or write of the connection
      // fails.
      _ = try pollDescriptor(connection, for: POLLIN, until: Deadline(in: .seconds(60)))
      close(connection)
    }
  }
}
