import Foundation
import Testing

/// `Tests/Browser/try_page.py` acts as a user; this starts what it needs.
/// `DORMOUSE_PICTURES=DIRECTORY` keeps its screenshots.
@Suite(
  "The dashboard in a browser",
  .enabled(if: Programs.hasDormouse, "no dormouse: build the root package, or set DORMOUSE"),
  .enabled(if: Programs.chromium != nil, "chromium isn't installed"))
struct BrowserTests {
  private static func workers(port: UInt16) -> String {
    // The HTML would do harm if a page used it as such.
    let chatty =
      "import itertools, time\\nfor n in itertools.count():\\n  print('line', n, '<img src=x "
      + "onerror=\\\"harmed=1\\\"><script>harmed=1</script>' if n % 3 == 0 else '', "
      + "flush=True)\\n  time.sleep(0.5)"
    return """
        web:
          command: [python3, -m, http.server, "\(port)", --bind, 127.0.0.1]
          readiness: { tcp: \(port) }
        notes: { command: [python3, "\(Programs.root)/Examples/worker-protocol/worker.py"] }
        chatty: { command: [python3, -c, "\(chatty)"] }

      """
  }

  @Test(
    "A person's way through the pages, by mouse and keyboard, works and is accessible"
  )
  func way() throws {
    let port = try Programs.freePort()
    let daemon = try RunningDaemon(Self.workers(port: port))
    try daemon.wait(for: "web", "foreground", "background")
    #expect(try daemon.ask("hibernate", "web").code == 0)
    try daemon.wait(for: "web", "hibernated")
    let dashboard = try RunningDashboard(socket: daemon.socket)
    let script = "\(Programs.root)/Companions/Dashboard/Tests/Browser/try_page.py"
    var arguments = ["python3", script, try #require(Programs.chromium), dashboard.url]
    if let pictures = ProcessInfo.processInfo.environment["DORMOUSE_PICTURES"] {
      arguments.append(pictures)
    }
    let outcome = try Programs.run("/usr/bin/env", arguments)
    print(outcome.output)
    let failed = outcome.output.split(separator: "\n").filter { $0.hasPrefix("failed") }
    #expect(failed.isEmpty && outcome.code == 0, "\(outcome.output)")
    // The page showed what the daemon reports.
    #expect(try daemon.state(of: "notes") == "hibernated")
    #expect(try daemon.state(of: "web") == "suspended")
  }
}
