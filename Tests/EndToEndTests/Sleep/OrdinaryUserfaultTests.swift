import Glibc
import Linux
import TestSupport
import Testing

/// An ordinary user's daemon resumes lazily and trims to images by the service for userfaultfd.
@Suite(
  "An ordinary user's daemon with the service for userfaultfd",
  .enabled(
    if: TestMachine.canBecomeNobody && TestMachine.hasCgroups
      && access("/dev/userfaultfd", F_OK) == 0,
    "takes root, setpriv, cgroups and /dev/userfaultfd"))
struct OrdinaryUserfaultTests {
  // It is ended before its group is removed: members are destroyed in this order.
  private let daemon: TestDaemon
  private let group: DelegatedTestGroup
  private let service: UserfaultServiceProcess
  private let web: WebWorker

  private static let policy = """
    policy_overrides:
      pressure: { warning: never, urgent: never, critical: { available_below: 1% } }
      background: { suspend_after: 1h }
      hibernate:
        { min_footprint: 0B, cooldown: 0s, only_if_faster_than_relaunch: false, resume: lazy }
      trim: { min_gain: 0B, mechanism: userfaultfd }
    workers:

    """

  init() throws {
    service = try UserfaultServiceProcess()
    group = try DelegatedTestGroup(name: service.scratch.path)
    web = try WebWorker(megabytes: 8)
    daemon = try TestDaemon(
      Self.policy + web.entry(.ordinaryUser), setting: .ordinaryUser, starts: false,
      wrapper: group.wrapper)
    daemon.set("DORMOUSE_CGROUP", group.path)
    daemon.set("DORMOUSE_USERFAULT_SOCKET", service.path)
  }

  private func start() throws -> (HTTPConnection, digest: String, pid: Int32) {
    try daemon.start()
    let (connection, digest) = try web.answer(under: daemon)
    return (connection, digest, try #require(try daemon.worker("web").pid))
  }

  /// The kinds of the worker's descriptors that have something to do with userfaultfd.
  private func userfaults(of pid: Int32) throws -> [String] {
    try listDirectory("/proc/\(pid)/fd").compactMap { readLink("/proc/\(pid)/fd/\($0)") }
      .filter { $0.contains("userfaultfd") }
  }

  @Test func `A worker is resumed lazily, also the second time without the service`() throws {
    let (connection, digest, pid) = try start()
    for round in 0..<2 {
      try daemon.done("hibernate", "web")
      #expect(try daemon.done("status", "web").contains("lazily"), "\(daemon.logText)")
      #expect(try connection.get("/digest") == digest, "\(daemon.logText)")
      try daemon.wait("web", toBe: "background")
      #expect(!daemon.logText.contains("restored in full"), "\(daemon.logText)")
      #expect(try userfaults(of: pid) == ["anon_inode:[userfaultfd]"])
      if round == 0 { kill(service.process.pid, SIGKILL) }
    }
  }

  @Test(
    "A worker that is trimmed stays trimmed and correct when its daemon is killed, also with Yama",
    arguments: [false, true])
  func trimmed(withYama: Bool) throws {
    if withYama {
      let permissions = service.scratch.path + "/permissions"
      #expect(mkdir(permissions, 0o777) == 0 && chmod(permissions, 0o777) == 0)
      daemon.set("DORMOUSE_TEST_YAMA", permissions)
    }
    let (connection, digest, pid) = try start()
    let before = try #require(try Footprint.measure(pid)).anonymous
    #expect(try daemon.done("trim", "web").hasPrefix("web was trimmed: "))
    let after = try #require(try Footprint.measure(pid)).anonymous
    #expect(after < before / 2, "\(before) → \(after)")
    try daemon.restartAfterCrash()
    #expect(try eventually { try daemon.worker("web").trim?.swapped ?? 0 > 4 << 20 })
    #expect(try #require(try Footprint.measure(pid)).anonymous < before / 2)
    #expect(try connection.get("/digest") == digest, "\(daemon.logText)")
    #expect(try daemon.worker("web").pid == pid)
    #expect(try daemon.done("fill", "web").hasPrefix("web is filled"))
    #expect(try connection.get("/digest") == digest)
    try daemon.done("hibernate", "web")
    #expect(try daemon.done("status", "web").contains("lazily"))
    #expect(try connection.get("/digest") == digest)
  }

  @Test("Trimmed workers get their pages although their daemon may start no further thread")
  func noThreads() throws {
    let webs = try (0..<6).map { try WebWorker(megabytes: 4, name: "web\($0)") }
    try daemon.rewrite(Self.policy + webs.map { $0.entry(.ordinaryUser) }.joined())
    try daemon.start()
    let connections = try webs.map { web in
      try daemon.waitUntilRuns(web.name)
      return try HTTPConnection(port: web.port)
    }
    let digests = try connections.map { try $0.get("/digest") }
    for web in webs { try daemon.done("trim", web.name) }
    let pid = daemon.pid
    let areResting = try eventually {
      try threads(of: pid).allSatisfy { thread in
        let name = try readIfPossible { () throws(SystemCallError) in
          try readText("/proc/\(pid)/task/\(thread)/comm")
        }
        return name?.hasPrefix("dormouse-pager") != true
      }
    }
    #expect(areResting)
    try daemon.limitThreads(to: 1)
    // Those that have got their pages keep their threads for a while.
    for (connection, digest) in zip(connections, digests) {
      #expect(try connection.get("/digest") == digest, "\(daemon.logText)")
    }
    try daemon.limitThreads(to: 1000)
    for web in webs { try daemon.done("fill", web.name) }
  }

  @Test("If the daemon is killed while the worker has the device, the next daemon closes it there")
  func killed() throws {
    daemon.set("DORMOUSE_FAULT", "device-passed")
    let (connection, digest, pid) = try start()
    _ = try daemon.verb("hibernate", "web")
    _ = try daemon.waitForEnd()
    #expect(try userfaults(of: pid) == ["/dev/userfaultfd"])
    daemon.set("DORMOUSE_FAULT", "none")
    try daemon.start()
    #expect(try connection.get("/digest") == digest, "\(daemon.logText)")
    #expect(try userfaults(of: pid) == [])
    try daemon.done("hibernate", "web")
    #expect(try daemon.done("status", "web").contains("lazily"))
    #expect(try connection.get("/digest") == digest)
  }

  @Test("Without the service, a worker is resumed in full, and isn't trimmed to an image")
  func withoutService() throws {
    daemon.set("DORMOUSE_USERFAULT_SOCKET", "\(service.scratch.path)/none.sock")
    let (connection, digest, pid) = try start()
    try daemon.done("hibernate", "web")
    let status = try daemon.done("status", "web")
    #expect(status.contains("no service for userfaultfd runs"), "\(status)")
    #expect(try connection.get("/digest") == digest)
    let refusal = try daemon.verb("trim", "web").error
    #expect(refusal.contains("dormouse-userfault.socket"), "\(refusal)")
    #expect(refusal.contains("`mechanism: swap` doesn't need it"), "\(refusal)")
    // The service may be started later.
    #expect(try !daemon.done("explain", "web").contains("before its next launch"))
    #expect(try userfaults(of: pid) == [])
  }

  @Test(
    "If the service ends while a worker has a device and no negotiated userfaultfd, it keeps none")
  func serviceEnds() throws {
    let (connection, digest, pid) = try start()
    kill(service.process.pid, SIGKILL)
    try daemon.done("hibernate", "web")
    let status = try daemon.done("status", "web")
    #expect(status.contains("userfaultfd"), "\(status)")
    #expect(try userfaults(of: pid) == [])
    #expect(try connection.get("/digest") == digest)
  }
}

/// A cgroup that belongs to `TestMachine.unprivilegedUser`, as systemd delegates one.
private final class DelegatedTestGroup {
  let path: String

  init(name: String) throws {
    let root = try CgroupRoot.detect(name: CgroupRoot.name(forStateDirectory: name))
    path = root.path
    mkdir("\(path)/daemon", 0o755)
    for name in ["", "/cgroup.procs", "/cgroup.subtree_control", "/cgroup.threads"] {
      for directory in [path, "\(path)/daemon"] {
        chown(directory + name, TestMachine.unprivilegedUser, TestMachine.unprivilegedUser)
      }
    }
  }

  /// Starts a program in it: a process may only be moved within what belongs to its user.
  var wrapper: [String] {
    ["sh", "-c", "echo $$ > \(path)/daemon/cgroup.procs; exec \"$@\"", "sh"]
  }

  deinit {
    // What has been killed stays in it until the kernel has ended it. It can't be removed twice.
    _ = try? eventually { [path] in rmdir("\(path)/daemon") == 0 || errno != EBUSY }
    for name in (try? listDirectory(path)) ?? [] { rmdir("\(path)/\(name)") }
    rmdir(path)
  }
}
