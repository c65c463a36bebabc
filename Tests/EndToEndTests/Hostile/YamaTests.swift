import Glibc
import Linux
import TestSupport
import Testing

/// At Yama's scope 1 an ordinary user's daemon may trace and open its descendants, and processes
/// that permit it. The tests simulate Yama, because kernels without it are common: a process that
/// permits tracing has a file. (`make test-machines` has a kernel with Yama.)
@Suite(
  "Yama's restriction on tracing",
  .enabled(if: TestMachine.hasCgroups, "no cgroup for workers can be made here"))
struct YamaTests {
  /// A hibernated worker, and a connection to it.
  private final class Sleeper {
    let daemon: TestDaemon
    let permissions: String
    let connection: HTTPConnection
    let digest: String
    let pid: Int32

    /// - Parameters:
    ///   - forced: a process must also trace a worker to write its read-only pages (simulated).
    ///   - forks: the server is a child of the worker's first process.
    init(_ setting: Setting = .frozen, forced: Bool = false, forks: Bool = false) throws {
      let web = try WebWorker(megabytes: 1)
      let entry =
        forks
        ? """
          web:
            command: [sh, -c, "\(TestMachine.python) \(TestMachine.fixture("http_state.py")) \
        --port \(web.port) --megabytes 1 --delay-ms 20 & wait"]
            readiness: { tcp: \(web.port) }

        """ : web.entry(setting)
      daemon = try TestDaemon(MainJobTests.patient + entry, setting: setting, starts: false)
      permissions = daemon.scratch.path + "/permissions"
      mkdir(permissions, 0o700)
      daemon.set("DORMOUSE_TEST_YAMA", permissions)
      if forced { daemon.set("DORMOUSE_TEST_PROC_MEM", "1") }
      try daemon.start()
      (connection, digest) = try web.answer(under: daemon)
      pid = try #require(try daemon.worker("web").pid)
      #expect(try listDirectory(permissions).count == 1)
      try daemon.done("hibernate", "web")
    }

    func expectAwake() throws {
      #expect(try connection.get("/digest") == digest, "\(daemon.logText)")
      try daemon.wait("web", toBe: "background")
      #expect(try daemon.worker("web").pid == pid)
    }
  }

  @Test(
    "At Yama's scope 1, a worker sleeps on under the next daemon, which wakes and hibernates it",
    arguments: [(false, false), (true, false), (false, true)])
  func killed(forced: Bool, forks: Bool) throws {
    let sleeper = try Sleeper(forced: forced, forks: forks)
    #expect(try listDirectory(sleeper.permissions).count == (forks ? 2 : 1))
    for _ in 0..<2 {
      try sleeper.daemon.restartAfterCrash()
      try sleeper.daemon.wait("web", toBe: "hibernated")
      try sleeper.expectAwake()
      try sleeper.daemon.done("hibernate", "web")
    }
    try sleeper.expectAwake()
  }

  @Test(
    "At Yama's scope 1, a worker is the next daemon's after an upgrade, also without a cgroup",
    arguments: [Setting.frozen, .traced])
  func upgraded(setting: Setting) throws {
    let sleeper = try Sleeper(setting)
    try sleeper.daemon.done("shutdown", "--keep-workers")
    #expect(try sleeper.daemon.waitForEnd() == 0)
    try sleeper.daemon.start()
    try sleeper.expectAwake()
    try sleeper.daemon.done("hibernate", "web")
    try sleeper.expectAwake()
  }

  @Test func `At Yama's scope 1, recover resumes a hibernated worker`() throws {
    let sleeper = try Sleeper()
    try sleeper.daemon.crash()
    let outcome = try sleeper.daemon.recover(["DORMOUSE_TEST_YAMA": sleeper.permissions])
    #expect(outcome.code == 0, "\(outcome)")
    #expect(try sleeper.connection.get("/digest") == sleeper.digest)
  }

  @Test("A worker that has withdrawn its permission sleeps until a daemon may open its memory")
  func withdrawn() throws {
    let sleeper = try Sleeper()
    try sleeper.daemon.crash()
    let process = try #require(try listDirectory(sleeper.permissions).first)
    let file = "\(sleeper.permissions)/\(process)"
    #expect(unlink(file) == 0)
    try sleeper.daemon.start()
    #expect(try eventually { sleeper.daemon.logText.contains("web: can't be resumed: open ") })
    let refusal = try sleeper.daemon.verb("wake", "web")
    #expect(refusal.code != 0 && refusal.error.contains("Permission denied"), "\(refusal)")
    _ = try Descriptor.open(file, O_CREAT | O_WRONLY)
    try sleeper.daemon.done("wake", "web")
    try sleeper.expectAwake()
  }
}
