import Control
import Glibc
import Linux
import TestSupport
import Testing

/// A daemon with `WorkerKitProbe`, and a connection to the probe.
private final class KitProbe {
  let scratch: Scratch
  let daemon: TestDaemon
  let front: WebWorker
  private let socket: String
  private let log: String

  static let program = TestMachine.built("WorkerKitProbe")

  /// The growth of `front` brings the device under pressure; `purge` is the ladder's only rung.
  static let purging = """
    policy_overrides:
      memory: { budget: 300MB }
      background: { suspend_after: 1h, shed_deadline: 2s }
      hibernate: { after: never, cooldown: 0s, min_footprint: 0B, max_footprint: 1GB }
      pressure: { warning: never, urgent: { available_below: 50% }, critical: { available_below: \
    1% } }
      terminate: { settle: 100ms }
      ladder: { urgent: [purge] }

    """
  static let patient = """
    policy_overrides:
      background: { suspend_after: 1h, safe_point: { after_launch: 0s, after_wake: 0s } }
      hibernate: { after: never, cooldown: 0s, min_footprint: 0B }
      terminate: { grace: 20s }

    """
  static let hasty = """
    policy_overrides:
      background: { suspend_after: 100ms, safe_point: { after_launch: 0s, after_wake: 0s } }
      hibernate: { after: never }

    """

  init(_ policy: String, setting: Setting = .traced) throws {
    scratch = try Scratch()
    (socket, log) = ("\(scratch.path)/probe", "\(scratch.path)/log")
    front = try WebWorker(megabytes: 1, name: "front", more: "autostart: false")
    daemon = try TestDaemon(
      policy + """
        workers:
          probe: { command: ["\(Self.program)", "\(socket)", "\(log)"], readiness: { notify: true \
        } }

        """ + front.entry(), setting: setting)
    try daemon.wait("probe", toBe: "foreground")
  }

  /// The probe's answer to a command. The command wakes a sleeping probe.
  @discardableResult
  func ask(_ command: String) throws -> String {
    let connection = try send(command)
    return try answer(on: connection)
  }

  func send(_ command: String) throws -> Descriptor {
    let connection = try UnixSocket.connected(to: socket, .stream)
    try connection.writeAll(command + "\n")
    return connection
  }

  func answer(on connection: Descriptor) throws -> String {
    var received: [UInt8] = []
    while received.last != UInt8(ascii: "\n") {
      guard try pollDescriptor(connection.raw, for: POLLIN, until: Deadline(in: .seconds(60)))
      else { throw TestFailure("the probe doesn't answer; \(lines); \(daemon.logText)") }
      let chunk = try connection.read(upTo: 4096)
      if chunk.isEmpty { throw TestFailure("the probe hung up; \(lines); \(daemon.logText)") }
      received += chunk
    }
    return String(decoding: received.dropLast(), as: UTF8.self)
  }

  var report: WorkerReport { get throws { try daemon.worker("probe") } }

  var lines: [String] {
    ((try? readText(log)) ?? "").split(separator: "\n").map(String.init)
  }

  func wait(for text: String) throws {
    guard try eventually({ self.lines.contains { $0.contains(text) } }) else {
      throw TestFailure("\(text) isn't among \(lines); \(daemon.logText)")
    }
  }

  func waitForOffer(_ bytes: Int64) throws {
    guard try eventually({ try self.report.purgeable == bytes }) else {
      throw TestFailure("it offers \(try report.purgeable ?? 0); \(daemon.logText)")
    }
  }

  /// Brings the device under pressure.
  func press() throws {
    try daemon.done("start", "front")
    let connection = try HTTPConnection(port: front.port)
    #expect(try connection.get("/grow?mb=180") == "180 MB")
  }

  var purges: Int {
    daemon.logText.split(separator: "\n").count { $0.contains("of purgeable memory") }
  }
}

@Suite("WorkerKit under a daemon") struct KitUnderDaemonTests {
  @Test(
    "Purgeable data is whole or lost, never torn, when it is taken from a worker in any state",
    arguments: ["background", "suspend", "hibernate"])
  func taken(state: String) throws {
    for setting in Nightly.one(of: Setting.ofTestUser) {
      let probe = try KitProbe(KitProbe.purging, setting: setting)
      try probe.ask("fill 8 2 1048576")
      // The daemon detects the offer by itself: the probe sends no message about it.
      try probe.waitForOffer(8 << 20)
      try probe.daemon.done(state, "probe")
      let before = try probe.daemon.currentFootprint("probe")
      #expect(try probe.report.purgeable == 8 << 20)
      #expect(try probe.daemon.done("ps").contains("PURGEABLE"))
      try probe.press()
      try probe.daemon.waitForLogText("probe: purged: freed 8 MB of purgeable memory")
      #expect(try eventually { try probe.report.footprint <= before - 7 << 20 })
      try probe.daemon.done("foreground", "probe")
      #expect(try probe.ask("look") == "whole 0, gone 8, torn 0; held 2")
      // New data is offered again. A slow machine takes the first of it before the last is offered.
      try probe.ask("fill 3 1 524288")
      var seen = ""
      let isTaken = try eventually {
        seen = try probe.ask("look")
        return seen == "whole 0, gone 3, torn 0; held 1" && probe.purges >= 2
      }
      #expect(isTaken, "\(seen) \(probe.daemon.logText)")
    }
  }

  @Test(
    "The next daemon takes a sleeping worker's purgeable data, and the worker detects the loss",
    .enabled(if: TestMachine.hasCgroups, "no cgroup for workers can be made here"))
  func nextDaemon() throws {
    let probe = try KitProbe(KitProbe.purging, setting: .frozen)
    try probe.ask("fill 8 2 1048576")
    try probe.daemon.done("hibernate", "probe")
    try probe.daemon.restartAfterCrash()
    try probe.waitForOffer(8 << 20)
    try probe.press()
    try probe.daemon.waitForLogText("probe: purged: freed 8 MB of purgeable memory")
    try probe.daemon.done("foreground", "probe")
    #expect(try eventually { try probe.report.connections == 1 })
    #expect(try probe.ask("look") == "whole 0, gone 8, torn 0; held 2")
  }

  @Test(
    "A million accesses on three threads see no torn data while the daemon takes purgeable memory",
    .enabled(if: Nightly.runs, "only in make test-all"))
  func race() throws {
    let probe = try KitProbe(KitProbe.purging)
    try probe.ask("fill 64 4 16384")
    try probe.press()
    let race = try probe.send("race 3 1000000")
    #expect(try eventually(within: .seconds(60)) { probe.purges >= 4 }, "\(probe.daemon.logText)")
    try probe.ask("enough")
    let result = try probe.answer(on: race).split(whereSeparator: { !$0.isNumber })
      .compactMap { Int($0) }
    #expect(result.count == 3)
    let (accesses, lost, torn) = (result[0], result[1], result[2])
    #expect(accesses >= 1_000_000 && lost > 0 && torn == 0, "\(result)")
    #expect(try probe.ask("look").hasSuffix("torn 0; held 4"))
    #expect(try probe.report.talk == nil)
  }

  @Test(
    "A background task keeps a worker awake until it ends or expires; `explain`, `status` name it")
  func tasks() throws {
    let probe = try KitProbe(KitProbe.hasty)
    try probe.ask("task upload 0")
    try probe.daemon.done("background", "probe")
    try probe.wait(for: "didEnterBackground")
    #expect(try probe.report.tasks == ["upload"])
    let text = try probe.daemon.done("explain", "probe")
    #expect(text.contains("its background task upload may run for another"), "\(text)")
    #expect(try probe.daemon.done("status", "probe").contains("upload"))
    #expect(try probe.report.state == "background")
    try probe.ask("end upload")
    try probe.daemon.wait("probe", toBe: "suspended")
    #expect(try probe.report.tasks.isEmpty)
    #expect(probe.lines.contains("upload done"))

    try probe.daemon.done("foreground", "probe")
    try probe.ask("task export 400")
    try probe.daemon.done("background", "probe")
    try probe.daemon.wait("probe", toBe: "suspended")
    #expect(probe.lines.contains("export cancelled"))
    #expect(probe.lines.contains("export expired, deadline known"))
    try probe.daemon.waitForLogText("background task export is out of time")
  }

  @Test(
    "A background task that a worker begins while it is being suspended cancels the suspension",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func taskBeforeSleep(setting: Setting) throws {
    let probe = try KitProbe(KitProbe.patient, setting: setting)
    try probe.ask("late")
    try probe.daemon.done("suspend", "probe")
    try probe.daemon.wait("probe", toBe: "background")
    try probe.wait(for: "its background task late, sent while it was being suspended")
    #expect(try probe.report.tasks == ["late"])
    try probe.ask("end late")
    try probe.daemon.done("suspend", "probe")
    #expect(try probe.report.state == "suspended")
    try probe.daemon.expectSleep("probe", "suspended")
  }

  @Test(
    "A worker learns how long it slept, empties its caches on a warning, and reports its snapshot",
    arguments: Nightly.one(of: Setting.ofTestUser)
  )
  func life(setting: Setting) throws {
    let probe = try KitProbe(KitProbe.patient, setting: setting)
    try probe.ask("fill 3 0 4096")
    #expect(try probe.ask("cache 8") == "cache 8, photo loaded")
    let said = try probe.daemon.done("warn", "probe")
    // 8 MB of cache, 4 of photo, and the purgeable pages.
    #expect(said.hasPrefix("probe freed 12"), "\(said)")
    #expect(try probe.ask("kept") == "cache 0, photo unloaded")
    #expect(try probe.ask("look") == "whole 0, gone 3, torn 0; held 0")
    try probe.ask("cache 2")

    let beforeSleep = Clocks.boottime
    try probe.daemon.done("suspend", "probe")
    let asleep = Clocks.boottime
    #expect(try probe.daemon.done("status", "probe").contains("3 contents"))
    usleep(200_000)
    let wake = Clocks.boottime
    try probe.daemon.done("wake", "probe")
    let awake = Clocks.boottime
    try probe.wait(for: "didResume")
    let line = try #require(probe.lines.first { $0.hasPrefix("didResume") })
    let fields = line.split(separator: " ", maxSplits: 2)
    let milliseconds = try #require(Int64(fields[1]))
    #expect(milliseconds >= (wake - asleep) / 1_000_000 - 1, "\(line)")
    #expect(milliseconds <= (awake - beforeSleep) / 1_000_000 + 1, "\(line)")
    #expect(fields[2] == "woken on request")
    // Entering the background emptied it.
    #expect(try probe.ask("kept") == "cache 0, photo unloaded")
  }

  @Test(
    "A worker saves its state before SIGTERM arrives, whether it was awake or asleep",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func end(setting: Setting) throws {
    let probe = try KitProbe(KitProbe.patient, setting: setting)
    let end = ["willTerminate stopped on request", "saved", "SIGTERM"]
    try probe.daemon.done("stop", "probe")
    #expect(probe.lines.suffix(3) == end)
    for state in ["suspend", "hibernate"] {
      try probe.daemon.done("start", "probe")
      try probe.daemon.done(state, "probe")
      try probe.daemon.done("stop", "probe")
      #expect(probe.lines.suffix(3) == end, "\(probe.lines)")
      #expect(try probe.report.lastExit?.text == "exited with status 0")
    }
  }
}
