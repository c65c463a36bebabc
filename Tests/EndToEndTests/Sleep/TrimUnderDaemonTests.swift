import Control
import Linux
import TestSupport
import Testing

@Suite("Trims of a running worker") struct TrimUnderDaemonTests {
  /// A program with 24 MB of data. When the file that its argument names exists, it removes the
  /// file and reads all of the data.
  private static let hoarder = """
    import hashlib, os, sys, time
    data = [os.urandom(1 << 20) for _ in range(24)]
    def digest(): return hashlib.sha256(b"".join(data)).hexdigest()
    print("ready", digest(), flush=True)
    while True:
      time.sleep(0.2)
      if os.path.exists(sys.argv[1]):
        os.remove(sys.argv[1])
        print("again", digest(), flush=True)
    """

  private let scratch: Scratch
  private let daemon: TestDaemon

  init() throws {
    scratch = try Scratch()
    let script = try scratch.write("hoarder.py", Self.hoarder)
    daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 1h } }
      workers:
        hoarder:
          command: [\(TestMachine.python), \(script), \(scratch.path)/read]
          readiness: { log_line: ready }
      """)
    try daemon.wait("hoarder", toBe: "foreground")
  }

  /// The free space of all swap areas in bytes; nil if there are none.
  private static func freeSwap() -> Int64? {
    // A kernel without swap has no such file.
    let lines = ((try? readText("/proc/swaps")) ?? "").split(separator: "\n").dropFirst()
    if lines.isEmpty { return nil }
    return lines.reduce(0) { sum, line in
      let fields = line.split { $0 == " " || $0 == "\t" }
      guard fields.count >= 4, let size = Int64(fields[2]), let used = Int64(fields[3]) else {
        return sum
      }
      return sum + (size - used) * 1024
    }
  }

  @Test("`trim` moves memory of a running worker to swap, and `fill` moves it back")
  func moved() throws {
    let free = Self.freeSwap()
    let pid = try daemon.worker("hoarder").pid
    let trim = try daemon.verb("trim", "hoarder")
    if let free, free >= 64 << 20 {
      if trim.code == 0 {
        try checkTrimmed(trim.output)
      } else {
        // A daemon without the capability may not move a worker's memory, nor may one whose cgroup
        // has no swap.
        let reasons = ["CAP_SYS_NICE", "memory.swap.max"]
        #expect(reasons.contains { trim.error.contains($0) }, "\(trim)")
      }
    } else if free == nil {
      #expect(trim.code == 1 && trim.error.contains("can't be trimmed: "), "\(trim)")
      #expect(trim.error.contains("there is no swap"), "\(trim)")
      #expect(try daemon.done("fill", "hoarder").contains("all of its memory is in RAM"))
    }
    let worker = try daemon.worker("hoarder")
    #expect(worker.pid == pid && worker.state == "foreground")
    // Its memory is what it was.
    try scratch.write("read", "")
    #expect(try eventually { try daemon.done("logs", "hoarder").contains("again ") })
    let digests = try daemon.done("logs", "hoarder").split(separator: "\n")
      .compactMap { $0.split(separator: " ").last }
    #expect(digests.count >= 2 && Set(digests).count == 1, "\(digests)")
  }

  private func checkTrimmed(_ said: String) throws {
    #expect(said.hasPrefix("hoarder was trimmed: "), "\(said)")
    let report = try daemon.worker("hoarder").trim
    let last = try #require(report?.last)
    #expect(last.swapped > 16 << 20 && last.residentAfter < last.residentBefore - 16 << 20)
    #expect(report?.trims == 1)
    #expect(try daemon.done("ps").contains("SWAPPED"))
    #expect(try daemon.done("status", "hoarder").contains("trimmed "))
    #expect(try daemon.done("events", "--worker", "hoarder").contains("trimmed: "))
    #expect(try daemon.done("fill", "hoarder").hasPrefix("hoarder is filled"))
    #expect(try eventually { try daemon.worker("hoarder").trim?.swapped ?? 0 < 1 << 20 })
  }
}
