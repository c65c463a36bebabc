import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Limits on descriptors") struct ScarcityTests {
  @Test("Out of descriptors, the daemon closes new clients' connections without a busy loop")
  func clients() throws {
    let daemon = try TestDaemon("workers: { sleeper: { command: sleep 690 } }")
    try daemon.wait("sleeper", toBe: "foreground")
    func limit(_ count: Int) throws {
      let outcome = try Command(
        arguments: ["prlimit", "--pid", "\(daemon.pid)", "--nofile=\(count):20000"]
      ).run(in: daemon.scratch)
      try #require(outcome.code == 0, "\(outcome)")
    }
    // The daemon's measurements open some for a moment, so the lowest count is used.
    let held = try (0..<30).map { _ in
      usleep(10_000)
      return try daemon.descriptorCount()
    }
    try limit((held.min() ?? 0) + 2)
    var open: [Descriptor] = []
    for _ in 0..<20 { open.append(try UnixSocket.connected(to: daemon.socket, .stream)) }
    try daemon.waitForLogText("out of descriptors")
    // The daemon closes all connections but the first two or three.
    let hungUp = try eventually {
      try open.filter {
        try pollDescriptor($0.raw, for: POLLIN, until: Deadline(in: .zero))
      }.count >= 16
    }
    #expect(hungUp)
    let before = try ProcessStat.read(daemon.pid).cpuTicks
    sleep(1)
    let ticks = try ProcessStat.read(daemon.pid).cpuTicks - before
    #expect(ticks < 50, "busy for \(ticks) ticks in a second")
    open = []
    try limit(1000)
    #expect(try eventually { (try? daemon.ask(.suspend, "sleeper"))?.result == .done })
  }
}
