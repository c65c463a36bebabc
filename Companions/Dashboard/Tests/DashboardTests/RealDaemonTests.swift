import Foundation
import Testing

@Suite(
  "The dashboard with a real daemon",
  .enabled(if: Programs.hasDormouse, "no dormouse: build the root package, or set DORMOUSE"))
struct RealDaemonTests {
  private static let sleeper = """
      web: { command: [python3, -c, "import time; print('<b>hello</b>', flush=True); \
      time.sleep(9999)"] }

    """

  private func post(_ dashboard: RunningDashboard, _ verb: String, _ worker: String) throws
    -> WebClient.Answer
  {
    var headers = dashboard.cookie
    headers["X-Dormouse-Token"] = try dashboard.actionToken()
    headers["Origin"] = "http://127.0.0.1:\(dashboard.client.port)"
    return try dashboard.client.request("POST", "/api/workers/\(worker)/\(verb)", headers)
  }

  @Test("A request hibernates a real worker, another one wakes it, and the stream shows both")
  func wake() throws {
    let daemon = try RunningDaemon(Self.sleeper)
    try daemon.wait(for: "web", "foreground", "background")
    let dashboard = try RunningDashboard(socket: daemon.socket)
    let hibernated = try post(dashboard, "hibernate", "web")
    #expect(
      hibernated.status == 200 && hibernated.body.contains("\"isDone\":true"), "\(hibernated)")
    #expect(try daemon.state(of: "web") == "hibernated")
    let text = try dashboard.client.stream("/api/stream", dashboard.cookie) {
      $0.contains("\"state\":\"hibernated\"") && $0.contains("\"ladder\":[{")
    }
    #expect(text.contains("\"policy\":\"ios-5\"") && text.contains("\"imageSize\""))
    #expect(try post(dashboard, "wake", "web").status == 200)
    try daemon.wait(for: "web", "foreground", "background")
    let unknown = try post(dashboard, "wake", "wbe")
    #expect(unknown.status == 404 && unknown.body.contains("no worker named wbe"))
  }

  @Test("A worker's page has its explanation, its footprint by kind, and its log as text")
  func page() throws {
    let daemon = try RunningDaemon(Self.sleeper)
    try daemon.wait(for: "web", "foreground", "background")
    let dashboard = try RunningDashboard(socket: daemon.socket)
    let text = try dashboard.client.stream("/api/workers/web/stream", dashboard.cookie) {
      $0.contains("event: log") && $0.contains("\"anonymous\":")
    }
    #expect(text.contains("\"explanation\":{") && text.contains("\"because\":{"))
    #expect(text.contains("<b>hello</b>") && text.contains("\"command\":\"python3 -c"))
    let missing = try dashboard.client.stream("/api/workers/wbe/stream", dashboard.cookie) {
      $0.contains("event: missing")
    }
    #expect(missing.contains("no worker named wbe"))
  }

  @Test("An event is in the stream of each page that is open")
  func events() throws {
    let daemon = try RunningDaemon(Self.sleeper)
    try daemon.wait(for: "web", "foreground", "background")
    let dashboard = try RunningDashboard(socket: daemon.socket)
    // Both streams are served before the change.
    let streams = try (0..<2).map { _ in
      try dashboard.client.openStream("/api/stream", dashboard.cookie) {
        $0.contains("event: fleet")
      }
    }
    defer { streams.forEach { close($0) } }
    sleepUntilFollowed(daemon)
    #expect(try daemon.ask("suspend", "web").code == 0)
    for stream in streams {
      let text = try WebClient.read(stream) {
        $0.contains("event: event") && $0.contains("\"to\":\"suspended\"")
      }
      #expect(text.contains("\"worker\":\"web\""))
    }
  }

  /// Waits until the dashboard has both of its connections with the daemon.
  private func sleepUntilFollowed(_ daemon: RunningDaemon) {
    _ = try? eventually { try connections(daemon) >= 2 }
  }

  /// The daemon's ends of accepted connections.
  private func connections(_ daemon: RunningDaemon) throws -> Int {
    let table = try wholeText(ofKernelFile: "/proc/\(daemon.pid)/net/unix")
    // State 03 is connected; an accepted socket has its listener's path.
    return table.split(separator: "\n").filter {
      $0.hasSuffix(daemon.socket) && $0.contains(" 03 ")
    }.count
  }

  /// Reads a file of the kernel to its end. Foundation takes a short read for the end: from a table
  /// of more than 4 KB, as a busy machine has it, it returns only the first lines.
  private func wholeText(ofKernelFile path: String) throws -> String {
    let file = open(path, O_RDONLY)
    try #require(file >= 0)
    defer { close(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 14)
    while true {
      let count = read(file, &chunk, chunk.count)
      try #require(count >= 0)
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes += chunk[..<count]
    }
  }

  @Test("Several pages share two connections with the daemon, and without a page there is none")
  func sharing() throws {
    let daemon = try RunningDaemon(Self.sleeper)
    let dashboard = try RunningDashboard(socket: daemon.socket)
    // The daemon closes the connections of the test's own requests a moment after their clients.
    #expect(try eventually { try connections(daemon) == 0 })
    let pages = try (0..<4).map { _ in
      try dashboard.client.openStream("/api/stream", dashboard.cookie) {
        $0.contains("\"workers\":[{")
      }
    }
    var count = 0
    #expect(
      try eventually {
        count = try connections(daemon)
        return count == 2
      }, "\(count) connections")
    for page in pages { close(page) }
    #expect(try eventually { try connections(daemon) == 0 }, "the dashboard still asks")
  }

  @Test("When the daemon ends the stream says so, and continues with the next daemon")
  func restart() throws {
    let daemon = try RunningDaemon(Self.sleeper)
    let dashboard = try RunningDashboard(socket: daemon.socket)
    let page = try dashboard.client.openStream("/api/stream", dashboard.cookie) {
      $0.contains("\"name\":\"web\"")
    }
    defer { close(page) }
    daemon.stop()
    _ = try WebClient.read(page) { $0.contains("no daemon answers") }
    try daemon.start()
    _ = try WebClient.read(page) { $0.contains("\"name\":\"web\"") }
  }

  @Test("A daemon that doesn't answer is reported as slow, and its last answer stays")
  func slow() throws {
    let daemon = try RunningDaemon(Self.sleeper)
    let dashboard = try RunningDashboard(socket: daemon.socket)
    let page = try dashboard.client.openStream("/api/stream", dashboard.cookie) {
      $0.contains("\"name\":\"web\"")
    }
    defer { close(page) }
    kill(daemon.pid, SIGSTOP)
    defer { kill(daemon.pid, SIGCONT) }
    let text = try WebClient.read(page) {
      guard let problem = $0.range(of: "hasn't answered for") else { return false }
      return $0[problem.upperBound...].contains("\"workers\":[{")
    }
    let last = text.split(separator: "\n").last { $0.contains("hasn't answered for") }
    #expect(last?.contains("\"name\":\"web\"") == true)
  }
}
