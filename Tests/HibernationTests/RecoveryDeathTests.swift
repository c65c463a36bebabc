import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// A second daemon is killed while it recovers a worker that rests traced with its memory at rest.
/// No thread is expected to be borrowed then.
extension RecoveryTests {
  static let deathsAtRest: [(FaultPoint, FaultPoint)] = [
    (.rested, .recoverySeized), (.rested, .borrowedAgain), (.rested, .registersBack),
    (.writtenBack, .borrowedAgain),
  ]

  @Test(
    "A second daemon killed while it recovers a worker that rests traced loses nothing",
    arguments: deathsAtRest)
  func secondDeathAtRest(first: FaultPoint, second: FaultPoint) throws {
    let probe = try Probe(Self.command(), parking: .traced, fault: first)
    let sum = try probe.talk.ask("sum")
    try Self.letDaemonDie(of: probe, at: first)
    try probe.recoverAndDie(at: second)
    try recoverAndCheck(probe, sum)
  }

  @Test(
    "A second daemon killed before any of its calls of ptrace(2) loses nothing",
    arguments: [FaultPoint.evicting, .rested])
  func everyTraceCall(first: FaultPoint) throws {
    let library = try Fixture.compile("dies_at_call", shared: true)
    var call = 1
    while try dies(atCall: call, of: library, after: first) { call += 1 }
    #expect(call > 20, "only \(call) calls were made")
  }

  @Test func `A daemon killed at its first call of ptrace(2) leaves no child behind`() throws {
    // It is a race, which the child lost in three of four runs.
    for _ in 0..<8 {
      let null = try Descriptor.open("/dev/null", O_RDWR)
      var environment = Probe.environment(nil)
      environment["LD_PRELOAD"] = try Fixture.compile("dies_at_call", shared: true)
      environment["DIES_AT_CALL"] = "1"
      let daemon = try spawn(
        SpawnRequest(
          path: Probe.executable,
          arguments: ["HibernateProbe", "recover", "999999999", "1", "-", Fixture.imagePath()],
          environment: environment, directory: "/tmp", input: null.raw, output: null.raw,
          error: null.raw))
      var status: Int32 = 0
      waitpid(daemon.pid, &status, 0)
      #expect(status & 0x7f == SIGKILL)
      defer { kill(-daemon.pid, SIGKILL) }
      let isAlone = try eventually(within: .seconds(60)) {
        try ProcessScan.read().tree(root: daemon.identity, session: daemon.pid).isEmpty
      }
      #expect(isAlone)
    }
  }

  /// Returns false if the second daemon made fewer calls, and so recovered the worker.
  private func dies(
    atCall call: Int, of library: String, after first: FaultPoint
  ) throws -> Bool {
    let probe = try Probe(
      [try Fixture.compile("torture"), "1", "1", "3"], parking: .traced, fault: first)
    let sum = try probe.talk.ask("sum")
    try probe.die(during: "hibernate")
    var environment = Probe.environment(nil)
    environment["LD_PRELOAD"] = library
    environment["DIES_AT_CALL"] = "\(call)"
    let status = try probe.recover(environment)
    if status == 0 {
      try #require(try probe.talk.ask("sum") == sum)
      return false
    }
    try #require(status & 0x7f == SIGKILL, "at call \(call): status \(status)")
    try recoverAndCheck(probe, sum, "at call \(call)")
    return true
  }
}
