import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// A daemon is killed while it trims a worker by borrowed threads, and the next one puts the worker
/// right before it continues it.
@Suite(
  .serialized, .enabled(if: TestSwap.isAvailable, "no swap can be made here"))
struct TrimDeathTests {
  let service = HibernationService()

  static let points: [FaultPoint] = [
    .trimStopped, .trimRecorded, .trimBorrowed, .trimAdvised, .trimReturned, .trimContinuing,
  ]

  private func start(_ fault: FaultPoint?, time: Int = 1) throws -> (Probe, sum: String) {
    let probe = try Probe(TrimTests.command(), parking: .traced, fault: fault, time: time)
    return (probe, try probe.talk.ask("sum"))
  }

  private func record(of probe: Probe) -> String { probe.image + ".trim" }

  /// Does what a new daemon does: it repairs the worker, and adopts it.
  private func repairAndAdopt(_ probe: Probe) throws {
    try Hibernator.repairTrim(record: record(of: probe), of: probe.victim)
    #expect(!fileExists(record(of: probe)))
    try service.recover(probe.target, from: probe.image)
  }

  private func check(_ probe: Probe, _ sum: String) throws {
    #expect(try probe.talk.ask("sum") == sum)
    #expect(try probe.talk.ask("wake").hasPrefix("woke"))
    #expect(try probe.talk.ask("errors") == "errors 0 eintr 0")
    let mappings = try MemoryMapping.headers(of: probe.victim.pid)
    let isClean = !mappings.contains {
      $0.executable && !$0.writable && !$0.hasFile && $0.length == Injector.scratchLength
        && $0.name.isEmpty
    }
    #expect(isClean, "a scratch area is left")
  }

  @Test("A worker runs on after its daemon was killed at any step of a trim", arguments: points)
  func everyStep(fault: FaultPoint) throws {
    for time in [1, 2] {
      let (probe, sum) = try start(fault, time: time)
      try probe.die(during: "trim")
      try repairAndAdopt(probe)
      try check(probe, sum)
    }
  }

  @Test(
    "A second daemon killed while it repairs the worker leaves it to the third",
    arguments: [FaultPoint.trimBorrowed, .trimAdvised, .trimReturned],
    [FaultPoint.trimRepairing, .borrowedAgain])
  func repairDies(first: FaultPoint, second: FaultPoint) throws {
    // Nothing is borrowed again if all registers are back.
    if first == .trimReturned, second == .borrowedAgain { return }
    let (probe, sum) = try start(first)
    try probe.die(during: "trim")
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let daemon = try spawn(
      SpawnRequest(
        path: Probe.executable,
        arguments: [
          "HibernateProbe", "repair", "\(probe.victim.pid)", "\(probe.victim.startTime)",
          record(of: probe),
        ], environment: Probe.environment(second), directory: "/tmp", input: null.raw,
        output: null.raw, error: 2))
    var status: Int32 = 0
    waitpid(daemon.pid, &status, 0)
    #expect(status & 0x7f == SIGKILL)
    try repairAndAdopt(probe)
    try check(probe, sum)
  }

  @Test("A worker runs on after its daemon was killed at a random moment of a trim")
  func randomMoments() throws {
    var random = TestRandom(seed: 43)
    for _ in 0..<6 {
      let (probe, sum) = try start(nil)
      try probe.order("trim")
      usleep(UInt32.random(in: 0..<80_000, using: &random))
      try probe.daemonDies(by: SIGKILL)
      try repairAndAdopt(probe)
      try check(probe, sum)
    }
  }

  @Test("A record that is damaged or of another worker is refused, and nothing is changed")
  func damaged() throws {
    let (probe, sum) = try start(.trimAdvised)
    try probe.die(during: "trim")
    let path = record(of: probe)
    let bytes = try readFile(path)
    probe.target.waitForStops()
    let syscalls = try readText("/proc/\(probe.victim.pid)/syscall")
    var foreign = try TrimRecord(parsing: bytes)
    foreign.root = ProcessIdentity(pid: getpid(), startTime: 1)
    var flipped = bytes
    flipped[bytes.count / 2] ^= 4
    for wrong in [foreign.bytes, flipped, Array(bytes.dropLast(9)), Array("nonsense".utf8), []] {
      try StateFile.replace(path, with: wrong, durability: .none)
      let error = #expect(throws: HibernationError.self) {
        try Hibernator.repairTrim(record: path, of: probe.victim)
      }
      #expect(error?.aftermath == .intact)
      #expect(error?.reason.contains(path) == true, "\(error as Any)")
      #expect(try readText("/proc/\(probe.victim.pid)/syscall") == syscalls)
      #expect(fileExists(path))
    }
    try StateFile.replace(path, with: bytes, durability: .none)
    try repairAndAdopt(probe)
    try check(probe, sum)
  }

  @Test("The record of a worker that has ended, or of an earlier boot, is removed")
  func ended() throws {
    let (probe, sum) = try start(.trimRecorded)
    try probe.die(during: "trim")
    let path = record(of: probe)
    let bytes = try readFile(path)
    var earlier = try TrimRecord(parsing: bytes)
    earlier.boot = "00000000-0000-0000-0000-000000000000"
    try StateFile.replace(path, with: earlier.bytes, durability: .none)
    try repairAndAdopt(probe)
    try check(probe, sum)
    kill(probe.victim.pid, SIGKILL)
    reap(probe.victim.pid)
    try StateFile.replace(path, with: bytes, durability: .none)
    try Hibernator.repairTrim(record: path, of: probe.victim)
    #expect(!fileExists(path))
  }

  @Test("A thread that has run since the daemon's death keeps its state")
  func runSince() throws {
    let (probe, sum) = try start(.trimReturned)
    try probe.die(during: "trim")
    probe.target.waitForStops()
    kill(probe.victim.pid, SIGCONT)
    #expect(try probe.talk.ask("sum") == sum)
    try repairAndAdopt(probe)
    #expect(try probe.talk.ask("sum") == sum)
  }
}
