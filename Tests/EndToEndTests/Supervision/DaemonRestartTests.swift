import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("A daemon that was killed") struct RestartTests {
  @Test(
    "The next daemon takes over running and suspended workers with their memory and connections",
    arguments: Nightly.one(of: Setting.available))
  func adopted(setting: Setting) throws {
    let front = try WebWorker(megabytes: 1, name: "front")
    let back = try WebWorker(megabytes: 1, name: "back")
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 1h }
        hibernate: { after: never, cooldown: 0s }
        foreground: { max: 2 }
      workers:

      """ + front.entry(setting) + back.entry(setting), setting: setting)
    for name in ["front", "back"] { try daemon.wait(name, toBe: "foreground") }
    let pids = try ["front", "back"].map { try daemon.worker($0).pid }
    let connections = try [front, back].map { try HTTPConnection(port: $0.port) }
    let digests = try connections.map { try $0.get("/digest") }
    #expect(try connections.map { try $0.get("/count") } == ["1", "1"])
    try daemon.done("suspend", "back")

    try daemon.crash()
    try daemon.start()
    // It returns to the foreground.
    try daemon.wait("front", toBe: "foreground")
    // A frozen worker stays asleep until a request comes.
    try daemon.wait("back", toBe: setting == .frozen ? "suspended" : "background")
    #expect(try ["front", "back"].map { try daemon.worker($0).pid } == pids)
    #expect(try connections.map { try $0.get("/count") } == ["2", "2"])
    #expect(try connections.map { try $0.get("/digest") } == digests)

    // The next daemon manages it as its own worker.
    try daemon.done("suspend", "front")
    try daemon.done("foreground", "front")
    #expect(try connections[0].get("/count") == "3")
    try daemon.done("stop", "front", "back")
    #expect(try daemon.ask(.ps).workers?.map(\.state) == ["terminated", "terminated"])
  }

  @Test(
    "The next daemon resumes hibernated workers, which answer on the same connection",
    arguments: Nightly.one(of: Setting.available))
  func hibernated(setting: Setting) throws {
    let web = try WebWorker(megabytes: 2)
    let daemon = try TestDaemon(MainJobTests.patient + web.entry(setting), setting: setting)
    try daemon.wait("web", toBe: "foreground")
    let pid = try daemon.worker("web").pid
    let connection = try HTTPConnection(port: web.port)
    let digest = try connection.get("/digest")
    for round in 1...3 {
      try daemon.done("hibernate", "web")
      try daemon.crash()
      try daemon.start()
      // The verb may come while the worker is still being resumed. The worker isn't started a
      // second time.
      try daemon.done("foreground", "web")
      #expect(try daemon.worker("web").pid == pid, "\(daemon.logText)")
      #expect(try connection.get("/count") == "\(round)")
    }
    #expect(try connection.get("/digest") == digest)
    #expect(try eventually { try listDirectory("\(daemon.state)/images").isEmpty })
  }

  @Test(
    "A daemon killed in the middle of a hibernation or a resume loses no worker's memory",
    arguments: Nightly.one(of: Setting.available))
  func inBetween(setting: Setting) throws {
    let web = try WebWorker(megabytes: 1)
    let daemon = try TestDaemon(MainJobTests.patient + web.entry(setting), setting: setting)
    try daemon.wait("web", toBe: "foreground")
    let pid = try daemon.worker("web").pid
    let connection = try HTTPConnection(port: web.port)
    let digest = try connection.get("/digest")
    var random = TestRandom()
    for round in 1...8 {
      #expect(try daemon.ask(.suspend, "web").result == .done)
      let isResume = round % 4 == 0
      if isResume { #expect(try daemon.ask(.hibernate, "web").result == .done) }
      var client = try ControlClient(connectingTo: daemon.socket, isNamed: true)
      _ = try client.send(isResume ? .wake : .hibernate, worker: "web")
      usleep(useconds_t.random(in: 0..<(isResume ? 20_000 : 70_000), using: &random))
      try daemon.crash()
      try daemon.start()
      try daemon.done("foreground", "web")
      #expect(try daemon.worker("web").pid == pid, "round \(round): \(daemon.logText)")
      #expect(try connection.get("/count") == "\(round)")
    }
    #expect(try connection.get("/digest") == digest)
  }

  @Test("A worker that was launching when its daemon was killed is taken over by the next one")
  func whileLaunching() throws {
    let daemon = try TestDaemon(
      "workers: { mute: { command: sleep 660, readiness: { notify: true } } }")
    #expect(try eventually { try daemon.worker("mute").pid != nil })
    let pid = try daemon.worker("mute").pid
    try daemon.waitForRecord(of: "mute")
    try daemon.crash()
    try daemon.start()
    try daemon.wait("mute", toBe: "background")
    #expect(try daemon.worker("mute").pid == pid)
  }

  @Test func `The next daemon restarts a worker that was killed while no daemon ran`() throws {
    let web = try WebWorker(megabytes: 1)
    let daemon = try TestDaemon(MainJobTests.patient + web.entry())
    try daemon.wait("web", toBe: "foreground")
    let pid = try #require(try daemon.worker("web").pid)
    try daemon.crash()
    kill(pid, SIGKILL)
    #expect(try eventually { hasEnded(pid) })
    try daemon.start()
    try daemon.wait("web", toBe: "foreground")
    #expect(try daemon.worker("web").pid != pid)
    try daemon.waitForLogText("web: ended while no daemon was running")
  }

  @Test(
    "The next daemon ends the processes that a worker killed meanwhile left in its cgroup",
    .enabled(if: TestMachine.hasCgroups, "no cgroup for workers can be made here"))
  func remains() throws {
    let scratch = try Scratch()
    let pidFile = "\(scratch.path)/pid"
    let daemon = try TestDaemon(
      """
      workers:
        parent:
          command: [sh, -c, "sleep 662 & echo $! > \(pidFile); echo up; wait"]
          readiness: { log_line: up }
          autostart: false
      """, setting: .frozen)
    try daemon.done("start", "parent")
    let child = try #require(Int32(try readText(pidFile).split(separator: "\n").first ?? ""))
    let parent = try #require(try daemon.worker("parent").pid)
    let group = try daemon.recorded("cgroup", of: "parent")
    try daemon.crash()
    kill(parent, SIGKILL)
    #expect(try eventually { hasEnded(parent) })
    #expect(!hasEnded(child))
    try daemon.start()
    #expect(try eventually { hasEnded(child) })
    #expect(try eventually { access(group, F_OK) != 0 })
    try daemon.done("start", "parent")
    #expect(try eventually { daemon.record("parent")["cgroup"] == group })
  }
}
