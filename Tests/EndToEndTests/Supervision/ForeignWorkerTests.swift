import Glibc
import Linux
import TestSupport
import Testing

@Suite("External workers") struct ForeignWorkerTests {
  /// A server that the test supervises itself.
  private final class Stranger {
    private let server: ForeignServer
    var process: SpawnedProcess { server.process }
    var port: UInt16 { server.port }
    let group: WorkerCgroup?
    private let root: CgroupRoot?

    init(_ scratch: Scratch, inGroup: Bool = false) throws {
      let port = try freePort()
      server = try ForeignServer(
        scratch, "http_state.py", port: port,
        arguments: ["--port", "\(port)", "--delay-ms", "20", "--megabytes", "1"])
      if inGroup {
        let root = try CgroupRoot.detect(name: "dormouse-e2e-stranger-\(getpid())-\(port)")
        self.root = root
        group = try WorkerCgroup.create(in: root, name: "stranger")
        try group?.add(server.process.pid)
      } else {
        root = nil
        group = nil
      }
    }

    deinit {
      // A group with a process in it isn't removed.
      kill(server.process.pid, SIGKILL)
      _ = try? server.process.wait(.seconds(60))
      try? group?.remove(until: Deadline(in: .seconds(60)))
      root?.remove()
    }

    var isStopped: Bool { (try? ProcessStat.read(process.pid))?.state == .stopped }
    var isFrozen: Bool { (try? group?.isFrozen) == true }
  }

  @Test("A process adopted by its pid sleeps, hibernates and wakes, and is released unchanged")
  func byPid() throws {
    let daemon = try TestDaemon(TestDaemon.patient)
    let stranger = try Stranger(daemon.scratch)
    let connection = try HTTPConnection(port: stranger.port)
    let digest = try connection.get("/digest")
    let text = try daemon.done("adopt", "web", "--pid", "\(stranger.process.pid)")
    #expect(text.hasPrefix("web is managed (pid \(stranger.process.pid)"), "\(text)")
    let report = try daemon.worker("web")
    #expect(report.state == "background" && report.isAdopted == true && report.log == nil)

    try daemon.done("suspend", "web")
    #expect(stranger.isStopped)
    #expect(try connection.get("/count") == "1")
    try daemon.wait("web", toBe: "background")
    try daemon.done("hibernate", "web")
    #expect(try connection.get("/count") == "2")
    #expect(try connection.get("/digest") == digest)

    try daemon.done("hibernate", "web")
    try daemon.done("release", "web")
    #expect(try daemon.verb("status", "web").code == 3)
    #expect(!stranger.isStopped)
    #expect(try connection.get("/count") == "3")
    #expect(try connection.get("/digest") == digest)
    // Records are removed on another thread.
    for name in ["workers", "images"] {
      #expect(try eventually { try listDirectory("\(daemon.state)/\(name)").isEmpty })
    }
  }

  @Test(
    "A worker adopted by its cgroup sleeps stopped, and the cgroup stays when the worker has ended")
  func byCgroup() throws {
    guard TestMachine.hasCgroups else {
      return notTestedHere("no cgroup for workers can be made here")
    }
    let daemon = try TestDaemon(TestDaemon.patient, setting: .frozen)
    let stranger = try Stranger(daemon.scratch, inGroup: true)
    let path = try #require(stranger.group?.path)
    let connection = try HTTPConnection(port: stranger.port)
    let digest = try connection.get("/digest")
    try daemon.done("adopt", "web", "--cgroup", path)
    try daemon.done("hibernate", "web")
    #expect(!stranger.isFrozen)
    // The next daemon knows from the record that the worker is external, and wakes it.
    try daemon.restartAfterCrash()
    #expect(try eventually { (try? daemon.worker("web"))?.state == "background" })
    #expect(try connection.get("/digest") == digest)
    #expect(try daemon.worker("web").isAdopted == true)

    kill(stranger.process.pid, SIGKILL)
    #expect(try eventually { try daemon.verb("status", "web").code == 3 })
    #expect(access(path, F_OK) == 0)
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
    let strangers = try [Stranger(daemon.scratch), Stranger(daemon.scratch)]
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
