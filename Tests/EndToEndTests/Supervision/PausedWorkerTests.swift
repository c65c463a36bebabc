import Glibc
import Linux
import TestSupport
import Testing

/// The tests do what `docker pause` does, with each version of cgroups that this machine has.
@Suite("An adopted worker that its manager freezes and thaws") struct PausedWorkerTests {
  enum Version: String, CaseIterable, Sendable {
    case one, two

    var isHere: Bool {
      switch self {
      case .one: OldFreezer.mountPoint().map { access($0, W_OK) == 0 } ?? false
      case .two: TestMachine.hasCgroups
      }
    }

    static let here = allCases.filter(\.isHere)
  }

  /// A server in a container's cgroup.
  private final class Paused {
    private let foreign: ForeignServer
    var server: SpawnedProcess { foreign.process }
    var port: UInt16 { foreign.port }
    private let version: Version
    private let group: String
    private let root: CgroupRoot?

    init(_ scratch: Scratch, _ version: Version) throws {
      self.version = version
      let port = try freePort()
      foreign = try ForeignServer(
        scratch, "http_state.py", port: port,
        arguments: ["--port", "\(port)", "--megabytes", "4"])
      let name = "dormouse-e2e-paused-\(foreign.process.pid)"
      switch version {
      case .one:
        root = nil
        group = try #require(OldFreezer.mountPoint()) + "/" + name
        #expect(mkdir(group, 0o755) == 0)
      case .two:
        let root = try CgroupRoot.detect(name: name)
        self.root = root
        group = try WorkerCgroup.create(in: root, name: "container").path
      }
      try writeControl("\(group)/cgroup.procs", "\(server.pid)")
    }

    func pause() throws {
      try set(version == .one ? "FROZEN" : "1")
      let pid = server.pid
      guard try eventually({ ForeignFreeze.holds(pid) }) else { throw TestFailure("not frozen") }
    }

    func unpause() throws { try set(version == .one ? "THAWED" : "0") }

    private func set(_ value: String) throws {
      try writeControl("\(group)/\(version == .one ? "freezer.state" : "cgroup.freeze")", value)
    }

    deinit {
      // Whatever the test has left: it can't be killed while it is frozen.
      _ = try? unpause()
      kill(server.pid, SIGKILL)
      _ = try? server.wait(.seconds(60))
      rmdir(group)
      root?.remove()
    }
  }

  private static let policy = """
    policy_overrides:
      background: { suspend_after: never }
      hibernate: { after: never, cooldown: 0s, max_footprint: 64MB }

    """

  @Test(
    "A hibernated worker sleeps through a pause; one that is needed meanwhile is woken afterwards",
    arguments: Version.here)
  func asleep(version: Version) throws {
    let daemon = try TestDaemon(Self.policy)
    let paused = try Paused(daemon.scratch, version)
    let connection = try HTTPConnection(port: paused.port)
    let digest = try connection.get("/digest")
    try daemon.done("adopt", "web", "--pid", "\(paused.server.pid)")
    try daemon.done("hibernate", "web")
    try paused.pause()
    // It would be woken by a signal of its manager within 100 ms.
    let other = try HTTPConnection(port: paused.port)
    try daemon.wait("web", toBe: "resuming")
    try paused.unpause()
    try daemon.wait("web", toBe: "background")
    #expect(try connection.get("/digest") == digest)
    #expect(try other.get("/digest") == digest)
    #expect(!daemon.logText.contains("SIGCONT"), "\(daemon.logText)")
  }

  @Test("A paused worker isn't put to sleep, and is as it was afterwards", arguments: Version.here)
  func awake(version: Version) throws {
    let daemon = try TestDaemon(Self.policy)
    let paused = try Paused(daemon.scratch, version)
    let connection = try HTTPConnection(port: paused.port)
    let digest = try connection.get("/digest")
    try daemon.done("adopt", "web", "--pid", "\(paused.server.pid)")
    try paused.pause()
    for verb in ["suspend", "hibernate"] {
      let refusal = try daemon.verb(verb, "web")
      #expect(refusal.code != 0 && refusal.error.contains("has frozen its cgroup"), "\(refusal)")
    }
    try paused.unpause()
    #expect(try connection.get("/digest") == digest)
    // Suspended, then paused: the memory stays where it is.
    try daemon.done("suspend", "web")
    try paused.pause()
    let refusal = try daemon.verb("hibernate", "web")
    #expect(refusal.code != 0 && refusal.error.contains("has frozen its cgroup"), "\(refusal)")
    try paused.unpause()
    #expect(try connection.get("/digest") == digest)
  }
}
