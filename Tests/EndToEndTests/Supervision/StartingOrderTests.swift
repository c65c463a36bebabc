import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Dependencies") struct DependencyTests {
  /// Writes a line when it starts and when it gets SIGTERM.
  private static func teller(_ name: String, _ file: String, _ more: String = "") -> String {
    """
      \(name):
        command: [sh, -c, 'trap "echo -\(name) >> \(file); exit 0" TERM; echo +\(name) >> \
    \(file); while :; do sleep 0.05; done']
        \(more)

    """
  }

  private static func lines(_ file: String) throws -> [String] {
    try readText(file).split(separator: "\n").map(String.init)
  }

  @Test func `Workers start after their dependencies and stop before them`() throws {
    let scratch = try Scratch()
    let file = "\(scratch.path)/order"
    let port = try freePort()
    let go = "\(scratch.path)/go"
    // It is ready when it listens.
    let server =
      "import os, time, socket\\nwhile not os.path.exists('\(go)'): time.sleep(0.02)\\n"
      + "open('\(file)', 'a').write('+db\\\\n'); "
      + "s = socket.create_server(('127.0.0.1', \(port))); time.sleep(1000)"
    let daemon = try TestDaemon(
      "policy_overrides: { terminate: { grace: 60s } }\nworkers:\n"
        + Self.teller("web", file, "depends_on: { db: ready, migrate: exited_ok, log: started }")
        + Self.teller("log", file) + """
            migrate:
              command: [sh, -c, 'sleep 0.2; echo migrated >> \(file)']
            db:
              command: [\(TestMachine.python), -c, "\(server)"]
              readiness: { tcp: \(port) }

          """)
    #expect(
      try eventually { try daemon.worker("web").reason.text.contains("db (ready)") },
      "\(daemon.logText)")
    #expect(try eventually { (try? Self.lines(file))?.contains("+log") == true })
    _ = try scratch.write("go", "")
    try daemon.wait("web", toBe: "foreground")
    // It writes its line after it has set its trap.
    #expect(try eventually { try Self.lines(file).contains("+web") })
    let order = try Self.lines(file)
    #expect(order.last == "+web", "\(order)")
    #expect(Set(order.dropLast()) == ["+log", "migrated", "+db"])
    kill(daemon.pid, SIGTERM)
    #expect(try daemon.waitForEnd() == 0)
    #expect(try Self.lines(file).suffix(2) == ["-web", "-log"])
  }
}
