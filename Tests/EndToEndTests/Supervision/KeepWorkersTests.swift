import Glibc
import Linux
import TestSupport
import Testing

@Suite("Workers whose daemon ends") struct KeepWorkersTests {
  private static let policy = TestDaemon.patient + "  foreground: { max: 3 }\nworkers:\n"

  /// Three workers: one runs, one is suspended and one is hibernated.
  private final class Trio {
    let names = ["runs", "rests", "sleeps"]
    let daemon: TestDaemon
    let connections: [HTTPConnection]
    let digests: [String]
    let pids: [Int32]

    init(_ setting: Setting) throws {
      let workers = try names.map { try WebWorker(megabytes: 1, name: $0) }
      daemon = try TestDaemon(
        policy + workers.map { $0.entry(setting) }.joined(), setting: setting)
      for name in names { try daemon.wait(name, toBe: "foreground") }
      connections = try workers.map { try HTTPConnection(port: $0.port) }
      digests = try connections.map { try $0.get("/digest") }
      pids = try names.map { [daemon] in try #require(try daemon.worker($0).pid) }
      for worker in workers { try worker.waitForItsReads() }
      try daemon.done("suspend", "rests")
      try daemon.done("hibernate", "sleeps")
    }

    /// All three answer on their earlier connections, with their earlier memory.
    func expectIntact(count: String) throws {
      for (index, connection) in connections.enumerated() {
        #expect(try connection.get("/count") == count, "\(names[index]): \(daemon.logText)")
        #expect(try connection.get("/digest") == digests[index])
      }
    }

    /// The next daemon has the same processes. Without a daemon, only a cgroup can keep a worker
    /// asleep safely.
    func expectTakenOver() throws {
      let states =
        daemon.setting == .frozen
        ? ["foreground", "suspended", "hibernated"] : ["foreground", "background", "background"]
      for (index, name) in names.enumerated() {
        try daemon.wait(name, toBe: states[index])
        #expect(try daemon.worker(name).pid == pids[index], "\(daemon.logText)")
      }
    }

    var images: [String] { (try? listDirectory("\(daemon.state)/images")) ?? [] }
  }

  @Test(
    "After `shutdown --keep-workers` the next daemon finds each worker as it was",
    arguments: Nightly.one(of: Setting.available))
  func kept(setting: Setting) throws {
    let trio = try Trio(setting)
    let text = try trio.daemon.done("shutdown", "--keep-workers")
    #expect(text.hasPrefix("the daemon ends; 3 workers remain"), "\(text)")
    #expect(try trio.daemon.waitForEnd() == 0)
    try trio.daemon.start()
    try trio.expectTakenOver()
    // The requests wake the workers.
    try trio.expectIntact(count: "1")
    #expect(trio.images.isEmpty)
  }

  @Test(
    "The next daemon takes over the workers of a killed one, asleep if they are frozen in cgroups",
    arguments: Nightly.one(of: Setting.available))
  func sleepOn(setting: Setting) throws {
    let trio = try Trio(setting)
    for round in 1...3 {
      try trio.daemon.restartAfterCrash()
      try trio.expectTakenOver()
      if setting == .frozen {
        let image = "\(trio.daemon.state)/images/sleeps.image"
        var file = stat()
        #expect(stat(image, &file) == 0)
        #expect(try trio.daemon.worker("sleeps").imageSize ?? 0 >= Int64(file.st_size))
      }
      try trio.expectIntact(count: "\(round)")
      try trio.daemon.done("suspend", "rests")
      try trio.daemon.done("hibernate", "sleeps")
    }
    try trio.daemon.done("stop", "runs", "rests", "sleeps")
    let states = try trio.daemon.ask(.ps).workers?.map(\.state)
    #expect(states == ["terminated", "terminated", "terminated"])
  }

  @Test("A request that arrived while no daemon ran wakes a sleeping worker when one starts")
  func callMeanwhile() throws {
    guard TestMachine.hasCgroups else {
      return notTestedHere("no cgroup for workers can be made here")
    }
    let trio = try Trio(.frozen)
    try trio.daemon.crash()
    for connection in trio.connections { try connection.send("/count") }
    try trio.daemon.start()
    for connection in trio.connections { #expect(try connection.receive() == "1") }
    for (name, state) in zip(trio.names, ["foreground", "background", "background"]) {
      try trio.daemon.wait(name, toBe: state)
    }
  }

  @Test("`recover` right after `shutdown --keep-workers` waits for the daemon's end and wakes all")
  func recoveredAtOnce() throws {
    let trio = try Trio(.traced)
    try trio.daemon.done("shutdown", "--keep-workers")
    let outcome = try trio.daemon.recover()
    #expect(outcome.code == 0, "\(outcome)")
    for (name, pid) in zip(trio.names, trio.pids) {
      #expect(outcome.output.contains("\(name): runs as pid \(pid)"), "\(outcome)")
    }
    #expect(try trio.daemon.waitForEnd() == 0)
  }

  @Test(
    "`recover` wakes all workers of a killed daemon, and a later daemon finds them",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func recovered(setting: Setting) throws {
    let trio = try Trio(setting)
    #expect(try trio.daemon.recover().output.hasPrefix("nothing to recover: a daemon runs with"))
    try trio.daemon.crash()
    let outcome = try trio.daemon.recover()
    #expect(outcome.code == 0, "\(outcome)")
    for (name, pid) in zip(trio.names, trio.pids) {
      #expect(outcome.output.contains("\(name): runs as pid \(pid)"), "\(outcome)")
    }
    #expect(trio.images.isEmpty)
    try trio.expectIntact(count: "1")
    // A later daemon finds them.
    try trio.daemon.start()
    for (name, pid) in zip(trio.names, trio.pids) {
      try trio.daemon.wait(name, toBe: name == "runs" ? "foreground" : "background")
      #expect(try trio.daemon.worker(name).pid == pid)
    }
    try trio.expectIntact(count: "2")
  }

  @Test(
    "`recover` resumes workers from images of every kind and leaves no image",
    arguments: ["resume: eager", "resume: lazy", "encrypt: true"])
  func recoverKinds(rule: String) throws {
    if rule.hasPrefix("encrypt"), !TestMachine.canEncrypt { return }
    let web = try WebWorker(megabytes: 1)
    let policy = MainJobTests.patient.replacing("hibernate: {", with: "hibernate: { \(rule),")
    let daemon = try TestDaemon(policy + web.entry())
    let (connection, digest) = try web.answer(under: daemon)
    for _ in 0..<2 {
      try daemon.done("hibernate", "web")
      try daemon.done("foreground", "web")
      #expect(try connection.get("/digest") == digest)
    }
    try daemon.done("hibernate", "web")
    try daemon.crash()
    let outcome = try daemon.recover()
    #expect(outcome.code == 0, "\(outcome)")
    #expect(try connection.get("/digest") == digest)
    // An old base holds the worker's memory, too.
    #expect(try eventually { try listDirectory("\(daemon.state)/images").isEmpty })
  }

  @Test(
    "`recover` terminates and names a worker whose memory can't be restored",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func unverifiable(setting: Setting) throws {
    let trio = try Trio(setting)
    try trio.daemon.crash()
    #expect(unlink("\(trio.daemon.state)/images/sleeps.image") == 0)
    let outcome = try trio.daemon.recover()
    #expect(outcome.code == 1)
    #expect(
      outcome.error.contains("sleeps: terminated: its memory can't be restored"), "\(outcome)")
    #expect(try eventually { hasEnded(trio.pids[2]) })
    #expect(try trio.connections[1].get("/count") == "1")
  }

  @Test func `recover uses the state directory of a configuration that has errors`() throws {
    let home = try Home()
    let (configured, usual) = ("\(home.scratch.path)/data", "\(home.scratch.path)/state/dormouse")
    try home.scratch.write(
      "config/dormouse/dormouse.yaml", "state_directory: \(configured)\npolicy: no-such-policy\n")
    let outcome = try home.run(["recover"], in: "")
    #expect(outcome.code == 0)
    #expect(
      outcome.output
        == "nothing to recover: there is no \(configured); there is no \(usual)\n")
  }

  @Test("`recover` without a state directory does nothing and doesn't create one")
  func nothing() throws {
    let scratch = try Scratch()
    let path = "\(scratch.path)/none"
    let outcome = try Command.dormouse(["recover", "--state-directory", path]).run(in: scratch)
    #expect(outcome.code == 0)
    #expect(outcome.output == "nothing to recover: there is no \(path)\n")
    #expect(access(path, F_OK) != 0)
  }
}
