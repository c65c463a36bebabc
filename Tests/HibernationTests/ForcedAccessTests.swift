import CLinux
import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Kernels on which only the thread that traces a process may write pages that the process itself
/// may not write (CONFIG_PROC_MEM_FORCE_PTRACE). A daemon with DORMOUSE_TEST_PROC_MEM enforces the
/// rule on itself.
@Suite(.serialized)
struct ForcedAccessTests {
  enum Way: String, CaseIterable, CustomTestStringConvertible {
    case eager, lazy, tracked, compared
    var testDescription: String { rawValue }
  }

  static let everyWay: [(Way, Victim.Parking)] = Nightly.oneOfEach(
    Way.allCases.map { way in
      Victim.Parking.available.filter { way != .lazy || $0 == .frozen }.map { (way, $0) }
    })

  @Test(
    "Where only the tracing thread may write read-only pages, a worker keeps every byte",
    arguments: everyWay)
  func torture(way: Way, parking: Victim.Parking) throws {
    let overlays = way == .tracked || way == .compared ? way.rawValue : nil
    let probe = try Probe(
      [try Fixture.compile("torture"), "2", "14", "3"], parking: parking, isLazy: way == .lazy,
      overlays: overlays, forced: true)
    let sum = try probe.talk.ask("sum")
    for round in 1...2 {
      try probe.perform("hibernate")
      try probe.perform("resume")
      if way == .lazy { try probe.perform("settle") }
      try #require(try probe.talk.ask("sum") == sum, "round \(round)")
    }
    #expect(try probe.talk.ask("wake").hasPrefix("woke"))
    #expect(try probe.talk.ask("errors") == "errors 0 eintr 0")
  }

  @Test(
    "A worker whose pages became read-only after its base was made resumes from both",
    arguments: Nightly.one(of: Victim.Parking.available))
  func changedProtection(parking: Victim.Parking) throws {
    let probe = try Probe(
      [try Fixture.compile("hardening")], parking: parking, overlays: "compared", forced: true)
    for command in ["sum", "harden", "harden", "soften", "sum"] {
      let answer = try probe.talk.ask(command)
      try #require(answer.hasSuffix(" right"), "\(command): \(answer)")
      try probe.perform("hibernate")
      try probe.perform("resume")
    }
    #expect(try probe.talk.ask("sum").hasSuffix(" right"))
  }

  static let deaths: [(FaultPoint, Victim.Parking)] = Nightly.oneOfEach(
    [FaultPoint.evicted, .rested, .writingBack].map { fault in
      Victim.Parking.available.map { (fault, $0) }
    })

  @Test("A later daemon restores read-only pages as their tracer, too", arguments: deaths)
  func recovery(fault: FaultPoint, parking: Victim.Parking) throws {
    let probe = try Probe(
      [try Fixture.compile("torture"), "4", "14", "3"], parking: parking, fault: fault, forced: true
    )
    let sum = try probe.talk.ask("sum")
    try RecoveryTests.letDaemonDie(of: probe, at: fault)
    #expect(try probe.recover(Probe.environment(nil, forced: true)) == 0)
    #expect(try probe.talk.ask("sum") == sum)
    #expect(try probe.talk.ask("errors") == "errors 0 eintr 0")
  }

  @Test("A process is traced only while its read-only pages are written, and not stopped")
  func briefly() throws {
    let victim = try Victim(ready: "torture", "1", "0", "9")
    let sum = try victim.ask("sum")
    let simulated = try runProtected(victim.process.pid, forced: true)
    #expect(
      simulated
        == "tracingThread: [\"refused\", \"written\", \"refused\"], traced by 0\n")
    let real = try runProtected(victim.process.pid, forced: false)
    if KernelFeatures.detect().forcedAccess == .anyThread {
      #expect(real == "anyThread: [\"written\", \"written\", \"written\"], traced by 0\n")
    } else {
      #expect(real == simulated)
    }
    #expect(try victim.ask("sum") == sum)
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }

  @Test func `The trial of what a tracer may do finds the same each time`() {
    for _ in 0..<3 {
      var (writes, showsRseq): (Int32, Int32) = (0, 0)
      #expect(clinux_try_as_tracer(&writes, &showsRseq) == 0)
      #expect(writes == KernelTrial.asTracer.writes)
      #expect(showsRseq == KernelTrial.asTracer.showsRseq)
    }
  }

  private func runProtected(_ pid: Int32, forced: Bool) throws -> String {
    try Probe.run(
      ["protected", "\(pid)"], prefix: forced ? ["env", "DORMOUSE_TEST_PROC_MEM=1"] : [])
  }
}
