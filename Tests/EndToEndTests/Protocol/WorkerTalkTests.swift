import Control
import Glibc
import JSONLines
import Linux
import TestSupport
import Testing

/// A daemon with `talker.py` in one of its modes, and the log of that.
final class Talker {
  let scratch: Scratch
  let daemon: TestDaemon
  let log: String

  /// For workers that answer: a busy machine may take any time for that.
  static let patient = policy(shedDeadline: "60s")
  /// For workers that don't answer in time.
  static let hurried = policy(shedDeadline: "400ms")

  private static func policy(shedDeadline: String) -> String {
    """
    policy_overrides:
      background:
        suspend_after: 1h
        shed_deadline: \(shedDeadline)
        safe_point: { after_launch: 0s, after_wake: 0s }
      hibernate: { after: never, cooldown: 0s, min_footprint: 0B, max_footprint: 1GB }
      watchdog: { answer: 1h }
      terminate: { grace: 20s }

    """
  }

  init(
    _ mode: String, _ policy: String = Talker.patient, setting: Setting = .traced,
    more: String = ""
  ) throws {
    scratch = try Scratch()
    log = "\(scratch.path)/talk"
    daemon = try TestDaemon(
      policy + """
        workers:
          talker:
            command: [\(TestMachine.python), \(TestMachine.fixture("talker.py")), \(mode), \(log)]
            readiness: { notify: true }
            \(more)
        """, setting: setting)
    try daemon.wait("talker", toBe: "foreground")
  }

  var lines: [String] {
    ((try? readText(log)) ?? "").split(separator: "\n").map(String.init)
  }

  /// The messages that arrived, in order. `types` omits `pressure`, which the daemon sends unasked.
  var messages: [JSON] { lines.compactMap { JSON(Array($0.utf8)) } }

  var types: [String] { messages.compactMap { $0["type"]?.text }.filter { $0 != "pressure" } }

  func wait(for line: String) throws {
    guard try eventually({ self.lines.contains { $0.contains(line) } }) else {
      throw TestFailure("\(line) isn't among \(lines); \(daemon.logText)")
    }
  }
}

@Suite("Workers that use the worker protocol") struct WorkerTalkTests {
  @Test(
    "A worker gets a message at each step of its life, and the memory that it freed is measured",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func life(setting: Setting) throws {
    let talker = try Talker("good", setting: setting)
    let daemon = talker.daemon
    #expect(try daemon.done("warn", "talker").hasPrefix("talker freed 8"))
    try daemon.done("background", "talker")
    // The message follows a measurement.
    try talker.wait(for: "didEnterBackground")
    try daemon.done("foreground", "talker")
    #expect(try eventually { talker.lines.count { $0 == "filled" } == 2 })
    try daemon.done("hibernate", "talker")
    try daemon.done("wake", "talker")
    try talker.wait(for: "didResume")
    try daemon.done("stop", "talker")
    #expect(
      talker.types == [
        "hello", "didEnterForeground", "memoryWarning", "didEnterBackground", "didEnterForeground",
        "didEnterBackground", "willSuspend", "didResume", "willTerminate",
      ])
    // SIGTERM follows the answer.
    #expect(talker.lines.suffix(2) == ["saved", "SIGTERM"])
    let warning = try #require(talker.messages.first { $0["type"]?.text == "memoryWarning" })
    #expect(warning["level"]?.text == "warning")
    #expect((warning["footprintBytes"]?.integer ?? 0) > 8 << 20)
    let resumed = try #require(talker.messages.first { $0["type"]?.text == "didResume" })
    #expect(resumed["cause"]?.text == "woken on request")
    let ids = talker.messages.compactMap { $0["id"]?.integer }
    #expect(ids == ids.sorted() && Set(ids).count == ids.count)
    #expect(try daemon.worker("talker").lastShed?.text.contains("freed 8") == true)
    #expect(try daemon.done("explain", "talker").contains("freed 8"))
  }

  @Test(
    "A worker that sends 100,000 lines leaks no descriptor and stops neither daemon nor verbs")
  func chatty() throws {
    let talker = try Talker("chatty", Talker.hurried)
    let daemon = talker.daemon
    var afterFirst = 0
    for round in 1...2 {
      if round > 1 { try daemon.done("start", "talker") }
      let isReady = try eventually { talker.lines.count { $0 == "ready" } == round }
      #expect(isReady, "\(talker.lines) \(daemon.logText)")
      // It gets warnings as any other worker.
      let warnings = talker.types.count { $0 == "memoryWarning" }
      let asked = try eventually {
        _ = try daemon.verb("warn", "talker")
        return talker.types.count { $0 == "memoryWarning" } > warnings
      }
      #expect(asked, "\(daemon.logText)")
      #expect(try daemon.ask(.ps).daemon?.pid == daemon.pid)
      try daemon.done("stop", "talker")
      if round == 1 { afterFirst = try daemon.descriptorCount() }
    }
    #expect(try eventually { try daemon.descriptorCount() <= afterFirst })
    #expect(try eventually { try daemon.zombies().isEmpty })
  }

  @Test(
    "After the daemon was killed, a running worker connects to the next, and a frozen one sleeps")
  func restart() throws {
    for setting in Nightly.one(of: Setting.ofTestUser) {
      let talker = try Talker("good", setting: setting)
      let daemon = talker.daemon
      try daemon.waitForRecord(of: "talker")
      try daemon.restartAfterCrash()
      #expect(try eventually { try daemon.worker("talker").connections == 1 })
      // It was in the foreground, and returns there.
      #expect(try eventually { talker.messages.last?["state"]?.text == "foreground" })
      #expect(try daemon.done("warn", "talker").hasPrefix("talker freed 8"))
      for state in ["suspended", "hibernated"] where setting == .frozen {
        try daemon.done(state == "suspended" ? "suspend" : "hibernate", "talker")
        let heard = talker.lines.count
        try daemon.restartAfterCrash()
        try daemon.waitForLogText("adopted, still \(state)")
        // The end of its connection to the killed daemon isn't a request, and must not wake it.
        try daemon.expectSleep("talker", state)
        #expect(talker.lines.count == heard)
        try daemon.done("wake", "talker")
        #expect(try eventually { try daemon.worker("talker").connections == 1 })
      }
    }
  }

  @Test func `A message from the daemon to a worker doesn't count as activity`() throws {
    let talker = try Talker(
      "good",
      """
      policy: \(TestMachine.policy("server"))
      policy_overrides:
        foreground: { idle_after: 2s }
        background: { suspend_after: 1s, shed_deadline: 500ms }
        hibernate: { after: never, cooldown: 0s, min_footprint: 0B }

      """, setting: TestMachine.hasCgroups ? .frozen : .traced)
    try talker.daemon.wait("talker", toBe: "suspended", within: .seconds(60))
    try talker.daemon.expectSleep("talker", "suspended")
    let logText = talker.daemon.logText
    #expect(!logText.contains("traffic, output or processor time"), "\(logText)")
  }
}
