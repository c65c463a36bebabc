import Glibc
import Linux
import TestSupport
import Testing

@Suite(
  "Suspended workers that are trimmed to an image",
  .enabled(if: TestMachine.hasCgroups && geteuid() == 0, "needs root, a cgroup"))
struct SuspendedTrimUnderDaemonTests {
  private let daemon: TestDaemon
  private let web: WebWorker

  init() throws {
    web = try WebWorker(megabytes: 8)
    daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 1h }
        hibernate: { min_footprint: 0B, cooldown: 0s, only_if_faster_than_relaunch: false }
        trim: { min_gain: 0B, mechanism: userfaultfd }
      workers:

      """ + web.entry(.frozen), setting: .frozen)
    try daemon.wait("web", toBe: "foreground")
  }

  /// Trims the worker, and suspends it.
  private func suspend() throws {
    #expect(try daemon.done("trim", "web").hasPrefix("web was trimmed: "))
    #expect(try daemon.done("suspend", "web").contains("web is suspended"))
  }

  @Test("They lose nothing when they are resumed, hibernated or stopped, also by another daemon")
  func everything() throws {
    let connection = try HTTPConnection(port: web.port)
    let digest = try connection.get("/digest")
    let pid = try #require(try daemon.worker("web").pid)
    for isKilled in [false, true] {
      try suspend()
      if isKilled {
        try daemon.restartAfterCrash()
      }
      try daemon.wait("web", toBe: "suspended")
      #expect(try connection.get("/digest") == digest, "\(daemon.logText)")
      try daemon.wait("web", toBe: "background")
      try suspend()
      if isKilled {
        try daemon.restartAfterCrash()
        try daemon.wait("web", toBe: "suspended")
      }
      #expect(try daemon.done("hibernate", "web").contains("web is hibernated"))
      #expect(try connection.get("/digest") == digest, "\(daemon.logText)")
      try daemon.wait("web", toBe: "background")
    }
    try suspend()
    #expect(try daemon.done("stop", "web").contains("web has ended"))
    #expect(!daemon.logText.contains("can't be woken before its end"), "\(daemon.logText)")
    #expect(try daemon.worker("web").pid != pid)
  }
}
