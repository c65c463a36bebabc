import Glibc
import Linux
import TestSupport
import Testing

/// The tests act as the service manager of an adopted cgroup: they do with the group what systemd
/// 252 and 257 do with a unit's. Tests/Machines/checks/adopt.sh tests the same with real systemd.
@Suite(
  "A worker in a cgroup that another program manages",
  .enabled(if: TestMachine.hasCgroups, "no cgroup for workers can be made here"))
struct ManagedGroupTests {
  /// A unit: one server in a group that isn't the daemon's.
  private final class Unit {
    private let foreign: ForeignServer
    var server: SpawnedProcess { foreign.process }
    let group: WorkerCgroup
    private let root: CgroupRoot
    private let file: String
    private let scratch: Scratch

    init(_ scratch: Scratch) throws {
      self.scratch = scratch
      let port = try freePort()
      file = scratch.uniquePath("saved")
      foreign = try ForeignServer(
        scratch, "unit_server.py", port: port, arguments: ["\(port)", file])
      root = try CgroupRoot.detect(name: "dormouse-e2e-unit-\(getpid())-\(port)")
      group = try WorkerCgroup.create(in: root, name: "unit")
      try group.add(server.pid)
    }

    deinit {
      kill(server.pid, SIGKILL)
      _ = try? server.wait(.seconds(60))
      try? group.remove(until: Deadline(in: .seconds(60)))
      root.remove()
    }

    func ask() throws -> String { try HTTPConnection(port: foreign.port).get("/") }

    /// The lines that the server has written on signals.
    var lines: [String] {
      let text = (try? readText(file)) ?? ""
      return text.split(separator: "\n").map(String.init)
    }

    /// As systemd ends a unit.
    func terminate() {
      kill(server.pid, SIGTERM)
      kill(server.pid, SIGCONT)
    }

    func freezer(_ value: String) throws { try writeControl("\(group.path)/cgroup.freeze", value) }
    var freezer: String { get throws { try readText("\(group.path)/cgroup.freeze") } }
  }

  enum Sleep: String, CaseIterable, CustomTestStringConvertible {
    case suspend, hibernate
    var testDescription: String { rawValue }
    var state: String { self == .suspend ? "suspended" : "hibernated" }
  }

  private func asleep(_ sleep: Sleep) throws -> (TestDaemon, Unit) {
    let daemon = try TestDaemon(TestDaemon.patient, setting: .frozen)
    let unit = try Unit(daemon.scratch)
    _ = try unit.ask()
    try daemon.done("adopt", "web", "--cgroup", unit.group.path)
    try daemon.done(sleep.rawValue, "web")
    try #require(try daemon.worker("web").state == sleep.state)
    return (daemon, unit)
  }

  @Test(
    "A worker in another manager's cgroup sleeps stopped; requests, SIGHUP and SIGCONT wake it",
    arguments: Sleep.allCases)
  func woken(sleep: Sleep) throws {
    let (daemon, unit) = try asleep(sleep)
    // Its cgroup is never frozen.
    #expect(try unit.freezer == "0\n")
    #expect(try !unit.group.isFrozen)
    let state = try ProcessStat.read(unit.server.pid).state
    #expect(state == (sleep == .suspend ? .stopped : .traced))
    #expect(try unit.ask().hasSuffix("True"))
    try daemon.wait("web", toBe: "background")
    for signal in [SIGHUP, SIGCONT] {
      try daemon.done(sleep.rawValue, "web")
      try #require(try daemon.worker("web").state == sleep.state)
      kill(unit.server.pid, signal)
      // SIGHUP is delivered.
      #expect(try eventually { unit.lines == ["reloaded"] })
      try daemon.wait("web", toBe: "background")
      #expect(try unit.ask().hasSuffix("True"))
    }
    // The next daemon knows from the record that the worker is external, and wakes it.
    try daemon.done("hibernate", "web")
    try daemon.restartAfterCrash()
    #expect(try eventually { (try? daemon.worker("web"))?.state == "background" })
    #expect(try unit.ask().hasSuffix("True"))
    #expect(try daemon.worker("web").isAdopted == true)
  }

  @Test(
    "A sleeping worker saves its state when its manager thaws its cgroup and ends it (systemd 252)",
    arguments: Sleep.allCases)
  func thawAndTerminate(sleep: Sleep) throws {
    let (_, unit) = try asleep(sleep)
    try unit.freezer("0")
    unit.terminate()
    #expect(try unit.server.wait(.seconds(60)) == 0)
    #expect(unit.lines.last == "saved 1 True")
  }

  @Test(
    "A program that a manager starts in a sleeping worker's cgroup wakes the worker (systemd 257)",
    arguments: Sleep.allCases)
  func programInGroup(sleep: Sleep) throws {
    let (daemon, unit) = try asleep(sleep)
    let begun = Clocks.monotonic
    let go = "\(daemon.scratch.path)/go"
    let script = "until [ -e \(go) ]; do sleep 0.1; done; kill -HUP \(unit.server.pid)"
    let null = try Descriptor.open("/dev/null", O_RDWR)
    // clone3(CLONE_INTO_CGROUP) into a frozen group doesn't return.
    let reload = try spawn(
      SpawnRequest(
        path: "/bin/sh", arguments: ["sh", "-c", script],
        environment: ["PATH": "/usr/bin:/bin"], directory: "/", input: null.raw, output: null.raw,
        error: null.raw,
        cgroup: unit.group.directory.raw))
    #expect(Clocks.monotonic - begun < 30_000_000_000)
    try daemon.wait("web", toBe: "background")
    // The manager waits for the program, so the program must not be suspended with the worker.
    let refusal = try daemon.verb("suspend", "web")
    #expect(
      refusal.code != 0 && refusal.error.contains("its manager started process"), "\(refusal)")
    _ = try daemon.scratch.write("go", "")
    #expect(try reload.wait(.seconds(60)) == 0)
    #expect(try eventually { unit.lines == ["reloaded"] })
    #expect(try unit.ask().hasSuffix("True"))
  }

  @Test(
    "SIGKILL ends a sleeping worker in another manager's cgroup at once, and the cgroup stays",
    arguments: Sleep.allCases)
  func killed(sleep: Sleep) throws {
    let (daemon, unit) = try asleep(sleep)
    kill(unit.server.pid, SIGKILL)
    #expect(
      try eventually(within: .seconds(60)) { try daemon.verb("status", "web").code == 3 })
    #expect(access(unit.group.path, F_OK) == 0)
  }

  @Test
  func `When an adopted cgroup's first process ends, the next one represents the worker`() throws {
    let daemon = try TestDaemon(TestDaemon.patient, setting: .frozen)
    let unit = try Unit(daemon.scratch)
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let next = try spawn(
      SpawnRequest(
        path: "/bin/sleep", arguments: ["sleep", "1000"], environment: [:], directory: "/",
        input: null.raw, output: null.raw, error: null.raw,
        cgroup: unit.group.directory.raw))
    defer {
      kill(next.pid, SIGKILL)
      // If it hasn't ended, the group's removal fails.
      _ = try? next.wait(.seconds(60))
    }
    try daemon.done("adopt", "web", "--cgroup", unit.group.path)
    kill(unit.server.pid, SIGKILL)
    #expect(try eventually { try daemon.worker("web").pid == next.pid })
    try daemon.done("suspend", "web")
    #expect(try daemon.worker("web").state == "suspended")
    try daemon.done("wake", "web")
    try daemon.wait("web", toBe: "background")
  }

  @Test(
    "Without a daemon, SIGCONT doesn't run a hibernated adopted worker; the next one resumes it")
  func continuedWithoutDaemon() throws {
    let (daemon, unit) = try asleep(.hibernate)
    try daemon.crash()
    unit.terminate()
    // It waits in code that Dormouse has placed, and the signal stays pending.
    #expect(try eventually { try ProcessStat.read(unit.server.pid).state == .sleeping })
    #expect(unit.lines.isEmpty)
    try daemon.start()
    #expect(try unit.server.wait(.seconds(60)) == 0)
    #expect(unit.lines.last == "saved 1 True")
  }

  @Test func `A daemon that ends wakes its adopted worker and releases it`() throws {
    let (daemon, unit) = try asleep(.hibernate)
    // The daemon and the worker end at the same time, as at a reboot.
    kill(daemon.pid, SIGTERM)
    unit.terminate()
    #expect(try unit.server.wait(.seconds(60)) == 0)
    #expect(unit.lines.last == "saved 1 True")
    #expect(try daemon.waitForEnd() == 0)
  }
}
