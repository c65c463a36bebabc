import Control
import TestSupport
import Testing

@Suite("Purgeable memory") struct PurgeTests {
  /// The growth of `front` brings the device under pressure; `purge` is the ladder's only rung.
  private static func configuration(_ front: WebWorker) -> String {
    """
    policy_overrides:
      memory: { budget: 300MB }
      background: { suspend_after: 1h, shed_deadline: 300ms }
      hibernate: { after: never, cooldown: 0s, min_footprint: 0B, max_footprint: 1GB }
      pressure: { warning: never, urgent: { available_below: 50% }, critical: { available_below: \
    1% } }
      ladder: { urgent: [purge] }
    workers:
      purger:
        command: [\(TestMachine.python), \(TestMachine.fixture("purger.py"))]
        readiness: { notify: true }

    """ + front.entry()
  }

  /// `KitUnderDaemonTests` has a worker of WorkerKit in each state.
  @Test("Only offered memory is taken from a worker that has made its table by the page")
  func taken() throws {
    for setting in Nightly.one(of: Setting.ofTestUser) {
      let front = try WebWorker(megabytes: 1, name: "front", more: "autostart: false")
      let daemon = try TestDaemon(Self.configuration(front), setting: setting)
      try daemon.wait("purger", toBe: "foreground")
      #expect(try eventually { try daemon.worker("purger").purgeable == 8 << 20 })
      try daemon.done("hibernate", "purger")
      let before = try daemon.currentFootprint("purger")
      #expect(try daemon.worker("purger").purgeable == 8 << 20)
      #expect(try daemon.done("ps").contains("PURGEABLE"))
      try daemon.done("start", "front")
      let connection = try HTTPConnection(port: front.port)
      #expect(try connection.get("/grow?mb=180") == "180 MB")
      try daemon.waitForLogText("purger: purged: freed 8 MB of purgeable memory")
      #expect(try daemon.worker("purger").purgeable == nil)
      #expect(try eventually { try daemon.worker("purger").footprint <= before - 8 << 20 })
      try daemon.done("foreground", "purger")
      let looked = try eventually { try daemon.worker("purger").says == "lost 8, wrong 0" }
      #expect(looked, "\(daemon.logText)")
      #expect(try daemon.worker("front").state != "terminated")
    }
  }
}
