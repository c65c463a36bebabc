import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Workers that another process kills") struct DeathTests {
  static let configuration = """
    policy_overrides:
      background: { suspend_after: 1h, shed_deadline: 100ms }
      hibernate: { after: never, cooldown: 0s }
    workers:

    """

  /// The resources that a daemon holds, for a comparison before and after.
  private struct Holdings {
    /// The cgroup of the workers' cgroups.
    let parent: String?
    var descriptors: Int
    var zombies: [String]
    var images: [String]
    var records: [String]
    var groups: [String]

    init(_ daemon: TestDaemon, groupsIn parent: String?) throws {
      self.parent = parent
      descriptors = try daemon.descriptorCount()
      zombies = try daemon.zombies()
      images = try listDirectory("\(daemon.state)/images")
      records = try listDirectory("\(daemon.state)/workers")
      groups = try parent.map { try listDirectory($0, onlyDirectories: true) } ?? []
    }

    /// The connection of the last request may still have been counted before.
    func isNoMore(than before: Holdings) -> Bool {
      descriptors <= before.descriptors && zombies.isEmpty && images.isEmpty && records.isEmpty
        && groups.isEmpty
    }
  }

  private func expectNothingLeft(
    of before: Holdings, in daemon: TestDaemon, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    var after = before
    let same = try eventually {
      after = try Holdings(daemon, groupsIn: before.parent)
      return after.isNoMore(than: before)
    }
    #expect(same, "\(before) → \(after); \(daemon.logText)", sourceLocation: sourceLocation)
    #expect(try !daemon.hasEnded(), sourceLocation: sourceLocation)
  }

  /// A daemon with a worker that has run once, and what the daemon holds while nothing runs.
  private func stopped(_ setting: Setting) throws -> (WebWorker, TestDaemon, Holdings) {
    let web = try WebWorker(megabytes: 1, more: "autostart: false")
    let daemon = try TestDaemon(Self.configuration + web.entry(setting), setting: setting)
    try daemon.done("start", "web")
    let parent = daemon.record("web")["cgroup"].map { path in
      "/" + path.split(separator: "/").dropLast().joined(separator: "/")
    }
    try daemon.done("stop", "web")
    _ = try daemon.ask(.ps)
    return (web, daemon, try Holdings(daemon, groupsIn: parent))
  }

  @Test(
    "A worker killed in any state becomes terminated with the cause, and leaves nothing behind",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func killedInState(setting: Setting) throws {
    let (web, daemon, before) = try stopped(setting)
    for verb in [ControlRequest.Verb.foreground, .background, .suspend, .hibernate] {
      try daemon.done("start", "web")
      let answer = try daemon.ask(verb, "web")
      #expect(answer.result == .done, "\(answer.text)")
      let pid = try #require(try daemon.worker("web").pid)
      kill(pid, SIGKILL)
      try daemon.wait("web", toBe: "terminated")
      let report = try daemon.worker("web")
      #expect(report.lastExit?.text == "ended by SIGKILL", "\(verb)")
      #expect(report.reason.text == "ended by SIGKILL", "\(verb)")
      #expect(report.pid == nil)
      try expectNothingLeft(of: before, in: daemon)
    }
    try daemon.done("start", "web")
    #expect(try HTTPConnection(port: web.port).get("/count") == "1")
  }

  @Test(
    "A worker killed at any moment of a hibernation or a resume becomes terminated and never hangs",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func killedInBetween(setting: Setting) throws {
    let (_, daemon, before) = try stopped(setting)
    var random = TestRandom()
    for round in 0..<Nightly.rounds(9, of: 24) {
      let started = try daemon.ask(.start, "web")
      #expect(started.result == .done, "round \(round): \(started)")
      #expect(try daemon.ask(.suspend, "web").result == .done)
      let pid = try #require(try daemon.worker("web").pid)
      var client = try ControlClient(connectingTo: daemon.socket, isNamed: true)
      let isResume = round % 3 == 2
      if isResume { #expect(try daemon.ask(.hibernate, "web").result == .done) }
      let id = try client.send(isResume ? .wake : .hibernate, worker: "web")
      usleep(useconds_t.random(in: 0..<(isResume ? 15_000 : 60_000), using: &random))
      kill(pid, SIGKILL)
      // Any answer is right, but there must be one in time.
      _ = try client.response(to: id, timeout: .seconds(60))
      try daemon.wait("web", toBe: "terminated")
      #expect(hasEnded(pid), "round \(round)")
    }
    try expectNothingLeft(of: before, in: daemon)
  }
}
