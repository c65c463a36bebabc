import Glibc
import Linux
import TestSupport
import Testing

@Suite("Descriptors") struct DescriptorLimitTests {
  @Test("The daemon raises its descriptor limit to at most 65536; its workers keep the original")
  func limits() throws {
    let daemon = try TestDaemon(
      """
      workers:
        counter: { command: [sh, -c, "ulimit -n; exec sleep 600"] }

      """)
    try daemon.wait("counter", toBe: "foreground")
    var original = rlimit()
    #expect(getrlimit(__rlimit_resource_t(7 /* RLIMIT_NOFILE */), &original) == 0)
    #expect(try eventually { daemon.workerLog("counter") == "\(original.rlim_cur)\n" })
    let limits = try readText("/proc/\(daemon.pid)/limits").split(separator: "\n")
    let line = try #require(limits.first { $0.hasPrefix("Max open files") })
    let soft = try #require(line.split(separator: " ").dropFirst(3).first.flatMap { UInt64($0) })
    #expect(soft == max(UInt64(original.rlim_cur), min(UInt64(original.rlim_max), 65536)))
  }
}
