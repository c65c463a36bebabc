import Glibc
import TestSupport
import Testing

@Suite("Images that aren't the workers' own") struct ImageSwapTests {
  private static let policy = """
    policy_overrides:
      background: { suspend_after: 1h }
      hibernate: { after: never, cooldown: 0s, max_footprint: 64MB, resume: eager, overlay: false }
      foreground: { max: 3 }
    workers:

    """

  @Test(
    "The next daemon detects swapped images from the workers' records and terminates the workers",
    .enabled(if: TestMachine.hasCgroups, "no cgroup for workers can be made here"))
  func nextDaemon() throws {
    let workers = try ["one", "two"].map { try WebWorker(megabytes: 2, name: $0) }
    let daemon = try TestDaemon(
      Self.policy + workers.map { $0.entry(.frozen) }.joined(), setting: .frozen)
    for worker in workers { try worker.waitUntilReady(under: daemon) }
    for worker in workers { try daemon.done("hibernate", worker.name) }
    let pids = try workers.map { try #require(try daemon.worker($0.name).pid) }
    try daemon.crash()
    let images = "\(daemon.state)/images"
    for (from, to) in [("one.image", "kept"), ("two.image", "one.image"), ("kept", "two.image")] {
      #expect(rename("\(images)/\(from)", "\(images)/\(to)") == 0)
    }
    try daemon.start()
    try daemon.waitForLogText("one: terminated: its memory can't be restored")
    try daemon.waitForLogText("it was replaced")
    for pid in pids { #expect(try eventually { hasEnded(pid) }) }
  }
}
