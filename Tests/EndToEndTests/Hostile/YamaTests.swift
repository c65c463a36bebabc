import Glibc
import Linux
import TestSupport
import Testing

/// At Yama's scope 1 an ordinary user's daemon may trace and open only its own children. A later
/// daemon may trace none of the earlier daemon's workers. The tests simulate Yama, because kernels
/// without it are common.
@Suite("Yama's restriction on tracing") struct YamaTests {
  private static let needsGroups: Comment = "no cgroup for workers can be made here"

  /// A hibernated worker, and a connection to it.
  private final class Sleeper {
    let daemon: TestDaemon
    let connection: HTTPConnection
    let digest: String
    let pid: Int32

    /// - Parameter forced: a process must also trace a worker to write its read-only pages
    ///   (simulated).
    init(forced: Bool = false) throws {
      let web = try WebWorker(megabytes: 1)
      daemon = try TestDaemon(
        MainJobTests.patient + web.entry(.frozen), setting: .frozen, starts: false)
      daemon.set("DORMOUSE_TEST_YAMA", "1")
      if forced { daemon.set("DORMOUSE_TEST_PROC_MEM", "1") }
      try daemon.start()
      try daemon.wait("web", toBe: "foreground")
      connection = try HTTPConnection(port: web.port)
      digest = try connection.get("/digest")
      pid = try #require(try daemon.worker("web").pid)
      try daemon.done("hibernate", "web")
    }

    func refusal() throws -> String {
      let outcome = try daemon.verb("hibernate", "web")
      #expect(outcome.code != 0)
      return outcome.error
    }

    func expectAwake() throws {
      #expect(try connection.get("/digest") == digest, "\(daemon.logText)")
      try daemon.wait("web", toBe: "background")
      #expect(try daemon.worker("web").pid == pid)
      #expect(try eventually { try listDirectory("\(daemon.state)/images").isEmpty })
    }
  }

  @Test(
    "At Yama's scope 1, a hibernated worker resumes under the next daemon after its own was killed",
    .enabled(if: TestMachine.hasCgroups, needsGroups), arguments: [false, true])
  func killed(forced: Bool) throws {
    let sleeper = try Sleeper(forced: forced)
    try sleeper.daemon.crash()
    try sleeper.daemon.start()
    try sleeper.expectAwake()
    // It isn't this daemon's child, and the answer says why it stays awake.
    let refusal = try sleeper.refusal()
    #expect(refusal.contains("can't watch its sockets while it sleeps"), "\(refusal)")
    #expect(try sleeper.connection.get("/digest") == sleeper.digest)
  }

  @Test(
    "At Yama's scope 1, a hibernated worker resumes under the next daemon after an upgrade",
    .enabled(if: TestMachine.hasCgroups, needsGroups))
  func upgraded() throws {
    let sleeper = try Sleeper()
    try sleeper.daemon.done("shutdown", "--keep-workers")
    #expect(try sleeper.daemon.waitForEnd() == 0)
    try sleeper.daemon.start()
    try sleeper.expectAwake()
  }

  @Test(
    "At Yama's scope 1, `recover` resumes a hibernated worker",
    .enabled(if: TestMachine.hasCgroups, needsGroups))
  func recovered() throws {
    let sleeper = try Sleeper()
    try sleeper.daemon.crash()
    var command = Command(
      arguments: [TestMachine.executable, "recover", "--state-directory", sleeper.daemon.state])
    command.environment["DORMOUSE_TEST_YAMA"] = "1"
    let outcome = try command.run(in: sleeper.daemon.scratch)
    #expect(outcome.code == 0, "\(outcome)")
    #expect(try sleeper.connection.get("/digest") == sleeper.digest)
    // The keeper isn't needed any more, and ends.
    let socket = "\(sleeper.daemon.state)/keeper.sock"
    #expect(try eventually { access(socket, F_OK) != 0 })
  }

  @Test(
    "At Yama's scope 1, a worker without a cgroup isn't hibernated, because it could not be resumed"
  )
  func withoutGroup() throws {
    let web = try WebWorker(megabytes: 1)
    let daemon = try TestDaemon(
      MainJobTests.patient + web.entry(), setting: .traced, starts: false)
    daemon.set("DORMOUSE_TEST_YAMA", "1")
    try daemon.start()
    try daemon.wait("web", toBe: "foreground")
    let refusal = try daemon.verb("hibernate", "web").error
    #expect(refusal.contains("kernel.yama.ptrace_scope"), "\(refusal)")
  }
}
