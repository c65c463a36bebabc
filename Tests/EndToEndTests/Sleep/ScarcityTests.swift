import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Few descriptors") struct ScarcityTests {
  @Test("The daemon takes as many as it may, and workers get what was usual before")
  func manyWorkers() throws {
    let workers = (0..<20).map { "  w\($0): { command: sleep 67\($0) }\n" }.joined()
    let daemon = try TestDaemon(
      """
      policy_overrides: { foreground: { max: unlimited }, background: { suspend_after: 1h } }
      workers:

      """ + workers,
      wrapper: ["prlimit", "--nofile=64:2048"])
    // They are launched one beside the other.
    for number in 0..<20 { try daemon.wait("w\(number)", toBe: "foreground") }
    let limits = try readText("/proc/\(try daemon.worker("w7").pid ?? 0)/limits")
    let files = limits.split(separator: "\n").first { $0.hasPrefix("Max open files") } ?? ""
    #expect(files.split(separator: " ").contains("64"), "\(files)")
  }

  @Test("Out of descriptors, it turns clients away without going round in circles")
  func clients() throws {
    let daemon = try TestDaemon("workers: { sleeper: { command: sleep 690 } }")
    try daemon.wait("sleeper", toBe: "foreground")
    func limit(_ count: Int) throws {
      let outcome = try Command(
        arguments: ["prlimit", "--pid", "\(daemon.pid)", "--nofile=\(count):20000"]
      ).run(in: daemon.scratch)
      try #require(outcome.code == 0, "\(outcome)")
    }
    // Its measurements hold some for a moment: the fewest count.
    let held = try (0..<30).map { _ in
      usleep(10_000)
      return try daemon.descriptorCount()
    }
    try limit((held.min() ?? 0) + 2)
    var open: [Descriptor] = []
    for _ in 0..<20 { open.append(try UnixSocket.connected(to: daemon.socket, .stream)) }
    try daemon.waitForWords("out of descriptors")
    // Everybody but the first two or three is hung up on.
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
