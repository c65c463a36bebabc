import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("A daemon that was killed") struct RestartTests {
  @Test(
    "A daemon killed in the middle of a hibernation or a resume loses no worker's memory",
    arguments: Nightly.one(of: Setting.available))
  func inBetween(setting: Setting) throws {
    let web = try WebWorker(megabytes: 1)
    let daemon = try TestDaemon(MainJobTests.patient + web.entry(setting), setting: setting)
    let (connection, digest) = try web.answer(under: daemon)
    let pid = try daemon.worker("web").pid
    var random = TestRandom()
    for round in 1...8 {
      #expect(try daemon.ask(.suspend, "web").result == .done)
      let isResume = round % 4 == 0
      if isResume { #expect(try daemon.ask(.hibernate, "web").result == .done) }
      var client = try ControlClient(connectingTo: daemon.socket, isNamed: true)
      _ = try client.send(isResume ? .wake : .hibernate, worker: "web")
      usleep(useconds_t.random(in: 0..<(isResume ? 20_000 : 70_000), using: &random))
      try daemon.restartAfterCrash()
      try daemon.done("foreground", "web")
      #expect(try daemon.worker("web").pid == pid, "round \(round): \(daemon.logText)")
      #expect(try connection.get("/count") == "\(round)")
    }
    #expect(try connection.get("/digest") == digest)
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
