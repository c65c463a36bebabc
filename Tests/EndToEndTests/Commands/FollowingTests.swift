import Glibc
import Linux
import TestSupport
import Testing

@Suite("Verbs that run until an event ends them") struct FollowingTests {
  private static let two = """
    policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
    workers:
      talker: { command: "sh -c 'echo hello; exec sleep 690'" }
      other: { command: sleep 691 }
    """

  private func follow(_ daemon: TestDaemon) throws -> (process: SpawnedProcess, error: String) {
    let output = daemon.scratch.uniquePath("out")
    let error = daemon.scratch.uniquePath("err")
    let process = try Command.dormouse(["logs", "--socket", daemon.socket, "-f", "talker"]).start(
      output: output, error: error)
    guard try eventually({ try readText(output).contains("hello") }) else {
      throw TestFailure("`logs -f` shows nothing: \(try readText(error))")
    }
    return (process, error)
  }

  @Test("`logs -f` ends when its worker is removed")
  func removed() throws {
    let daemon = try TestDaemon(Self.two)
    let (process, error) = try follow(daemon)
    try daemon.rewrite("workers: { other: { command: sleep 691 } }\n")
    try daemon.done("reload")
    #expect(try process.wait(.seconds(60)) == 0)
    let text = try readText(error)
    #expect(
      ["talker has been removed", "talker has ended"].contains { text.contains($0) }, "\(text)")
  }

  @Test("`logs -f` ends when the daemon has ended and no other daemon starts")
  func daemonEnds() throws {
    let daemon = try TestDaemon(Self.two)
    let (process, error) = try follow(daemon)
    try daemon.crash()
    #expect(try process.wait(.seconds(60)) == 0)
    #expect(try readText(error).contains("the daemon has ended"))
  }

  @Test("`bench` prints its finished rounds when Ctrl-C interrupts it")
  func bench() throws {
    let scratch = try Scratch()
    let code = "x=ready; echo $x; exec sleep 692"
    let arguments = [
      TestMachine.python, TestMachine.fixture("pty_run.py"), "200", "round 2 of", "\\x03", "--",
      TestMachine.executable, "bench", "--json", "--rounds", "5000", "--ready-line", "ready",
      "--state-directory", scratch.path, "--", "sh", "-c", code,
    ]
    let outcome = try Command(arguments: arguments).run(in: scratch, limit: .seconds(150))
    #expect(outcome.code == 128 + SIGINT, "\(outcome)")
    let json = try #require(
      outcome.output.split(separator: "\n").first { $0.contains(#""isInterrupted":true"#) },
      "\(outcome)")
    #expect(json.contains(#""schema":1"#))
    #expect(!json.contains(#""rounds":0"#) && !json.contains(#""rounds":5000"#), "\(json)")
    #expect(outcome.output.contains("of 5000 rounds"), "\(outcome)")
  }
}
