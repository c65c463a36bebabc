import Glibc
import Linux
import TestSupport
import Testing

/// At Yama's scope 1 an ordinary user's daemon may trace and open its own children only: a later daemon
/// none of the workers of the one before. Simulated, because kernels without Yama are common.
@Suite("Where a later daemon may not trace earlier workers") struct YamaTests {
  private static let needsGroups: Comment = "no cgroup for workers can be made here"

  /// A worker that is hibernated, and a connection to it.
  private final class Sleeper {
    let daemon: TestDaemon
    let connection: HTTPConnection
    let digest: String
    let pid: Int32

    init() throws {
      let web = try WebWorker(megabytes: 1)
      daemon = try TestDaemon(
        MainJobTests.patient + web.entry(.frozen), setting: .frozen, starts: false)
      daemon.set("DORMOUSE_TEST_YAMA", "1")
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
      #expect(try connection.get("/digest") == digest, "\(daemon.words)")
      try daemon.wait("web", toBe: "background")
      #expect(try daemon.worker("web").pid == pid)
      #expect(try listDirectory("\(daemon.state)/images").isEmpty)
    }
  }

  @Test(
    "a sleeper comes back after its daemon was killed",
    .enabled(if: Surroundings.hasCgroups, needsGroups))
  func killed() throws {
    let sleeper = try Sleeper()
    try sleeper.daemon.crash()
    try sleeper.daemon.start()
    try sleeper.expectAwake()
    // It is another's child now, and the answer says why it stays awake.
    let refusal = try sleeper.refusal()
    #expect(refusal.contains("can't watch its sockets while it sleeps"), "\(refusal)")
    #expect(try sleeper.connection.get("/digest") == sleeper.digest)
  }

  @Test("a sleeper comes back after an upgrade", .enabled(if: Surroundings.hasCgroups, needsGroups))
  func upgraded() throws {
    let sleeper = try Sleeper()
    try sleeper.daemon.done("shutdown", "--keep-workers")
    #expect(try sleeper.daemon.waitForEnd() == 0)
    try sleeper.daemon.start()
    try sleeper.expectAwake()
  }

  @Test("`recover` brings a sleeper back, too", .enabled(if: Surroundings.hasCgroups, needsGroups))
  func recovered() throws {
    let sleeper = try Sleeper()
    try sleeper.daemon.crash()
    var command = Command(
      arguments: [Surroundings.executable, "recover", "--state-directory", sleeper.daemon.state])
    command.environment["DORMOUSE_TEST_YAMA"] = "1"
    let outcome = try command.run(in: sleeper.daemon.scratch)
    #expect(outcome.code == 0, "\(outcome)")
    #expect(try sleeper.connection.get("/digest") == sleeper.digest)
    // Nobody needs the keeper any more.
    let socket = "\(sleeper.daemon.state)/keeper.sock"
    #expect(try eventually { access(socket, F_OK) != 0 })
  }

  @Test("without a cgroup nothing is hibernated, because it could not be brought back")
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
