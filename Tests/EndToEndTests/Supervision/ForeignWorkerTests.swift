import Glibc
import Linux
import TestSupport
import Testing

@Suite("External workers") struct ForeignWorkerTests {
  /// A server that the test supervises itself.
  private func stranger(_ scratch: Scratch) throws -> ForeignServer {
    let port = try freePort()
    return try ForeignServer(
      scratch, "http_state.py", port: port,
      arguments: ["--port", "\(port)", "--delay-ms", "20", "--megabytes", "1"])
  }

  @Test("A process adopted by its pid sleeps, hibernates and wakes, and is released unchanged")
  func byPid() throws {
    let daemon = try TestDaemon(TestDaemon.patient)
    let stranger = try stranger(daemon.scratch)
    let connection = try HTTPConnection(port: stranger.port)
    let digest = try connection.get("/digest")
    let text = try daemon.done("adopt", "web", "--pid", "\(stranger.process.pid)")
    #expect(text.hasPrefix("web is managed (pid \(stranger.process.pid)"), "\(text)")
    let report = try daemon.worker("web")
    #expect(report.state == "background" && report.isAdopted == true && report.log == nil)

    try daemon.done("suspend", "web")
    #expect(try ProcessStat.read(stranger.process.pid).state == .stopped)
    #expect(try connection.get("/count") == "1")
    try daemon.wait("web", toBe: "background")
    try daemon.done("hibernate", "web")
    #expect(try connection.get("/count") == "2")
    #expect(try connection.get("/digest") == digest)

    try daemon.done("hibernate", "web")
    try daemon.done("release", "web")
    #expect(try daemon.verb("status", "web").code == 3)
    #expect(try ProcessStat.read(stranger.process.pid).state != .stopped)
    #expect(try connection.get("/count") == "3")
    #expect(try connection.get("/digest") == digest)
    // Records are removed on another thread.
    for name in ["workers", "images"] {
      #expect(try eventually { try listDirectory("\(daemon.state)/\(name)").isEmpty })
    }
  }

  @Test(
    "An adopted worker is terminated for memory only if it was adopted with --may-terminate",
    arguments: [false, true])
  func underPressure(mayTerminate: Bool) throws {
    let daemon = try TestDaemon(
      """
      policy_overrides:
        memory: { budget: 20MB }
        background: { suspend_after: 1h }
        hibernate: { enabled: false }
        foreground: { max: 2 }
      """)
    let strangers = try [stranger(daemon.scratch), stranger(daemon.scratch)]
    for (name, stranger) in zip(["a", "b"], strangers) {
      var arguments = ["adopt", name, "--pid", "\(stranger.process.pid)"]
      if mayTerminate { arguments.append("--may-terminate") }
      #expect(try daemon.enter(arguments).code == 0)
    }
    for name in ["a", "b"] { _ = try daemon.verb("suspend", name) }
    if mayTerminate {
      #expect(
        try eventually {
          strangers.contains { hasEnded($0.process.pid) }
        })
    } else {
      try daemon.waitForLogText("pressure")
      #expect(!strangers.contains { hasEnded($0.process.pid) })
    }
  }
}
