import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Workers whose memory is moved to swap while they run.
@Suite(.serialized)
struct TrimTests {
  let service = HibernationService()

  static let isRoot = geteuid() == 0

  static func command(threads: Int = 6) throws -> [String] {
    [try Fixture.compile("torture"), "16", "\(threads)", "7"]
  }

  private func trim(
    _ victim: Victim, by mechanisms: [TrimSummary.Mechanism],
    features: KernelFeatures = .detect()
  ) throws -> TrimSummary {
    let (target, record) = (victim.target, Fixture.imagePath() + ".trim")
    let summary = try HibernationService(features: features).wait {
      (h) throws(HibernationError) in
      h.trimMechanisms = mechanisms
      return try h.trim(
        TrimRequest(HibernationRequest(target, to: record + ".image"), record: record))
    }
    #expect(!fileExists(record))
    return summary
  }

  /// The mechanisms that this process may use without a cgroup.
  static let direct: [TrimSummary.Mechanism] =
    isRoot ? [.processMadvise, .borrowedThread] : [.borrowedThread]

  @Test(
    "A trimmed worker runs on with its memory in swap, and a fill brings it back",
    .enabled(if: TestSwap.isAvailable, "no swap can be made here"), arguments: direct)
  func trimmed(mechanism: TrimSummary.Mechanism) throws {
    let victim = try Victim(ready: Self.command())
    let sum = try victim.ask("sum")
    for _ in 0..<2 {
      let summary = try trim(victim, by: [mechanism])
      #expect(summary.mechanism == mechanism)
      #expect(summary.swapped > 8 << 20, "\(summary)")
      #expect(summary.residentAfter < summary.residentBefore, "\(summary)")
      #expect((summary.stoppedFor > .zero) == (mechanism == .borrowedThread), "\(summary)")
      #expect(try victim.target.discover().processes.allSatisfy { $0.state != .stopped })
      #expect(try victim.ask("wake").hasPrefix("woke"))
      #expect(try victim.ask("sum") == sum)
    }
    _ = try trim(victim, by: [mechanism])
    let filled = try service.fill(victim.target)
    #expect(filled.mechanism == nil)
    #expect(filled.swapped == 0, "\(filled)")
    #expect(try victim.ask("sum") == sum)
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }

  @Test(
    "A borrowed thread makes a call for each range on a kernel that can't do all in one",
    .enabled(if: TestSwap.isAvailable, "no swap can be made here"))
  func callByCall() throws {
    var features = KernelFeatures.detect()
    features.processMadviseSelf = false
    features.pagemapScan = false
    let victim = try Victim(ready: Self.command(threads: 2))
    let sum = try victim.ask("sum")
    let summary = try trim(victim, by: [.borrowedThread], features: features)
    #expect(summary.swapped > 8 << 20, "\(summary)")
    #expect(try victim.ask("sum") == sum)
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }

  @Test(
    "The memory of a worker's own cgroup is reclaimed if the group has a memory controller",
    .enabled(if: TestSwap.isAvailable && Victim.cgroupRoot != nil, "no cgroup with swap here"))
  func reclaimed() throws {
    let victim = try Victim(ready: Self.command(threads: 2), parking: .frozen)
    guard victim.cgroup?.canReclaim == true else {
      return notTestedHere("a worker's cgroup has no memory.reclaim")
    }
    let sum = try victim.ask("sum")
    let summary = try trim(victim, by: [.reclaim])
    #expect(summary.mechanism == .reclaim)
    #expect(summary.swapped > 4 << 20, "\(summary)")
    #expect(try victim.ask("sum") == sum)
  }

  @Test(
    "Pages that a fork shares stay in RAM, and all processes run on",
    .enabled(if: TestSwap.isAvailable, "no swap can be made here"), arguments: direct)
  func forked(mechanism: TrimSummary.Mechanism) throws {
    let program = """
      import os, sys, time
      shared = bytes(range(256)) * 32768
      other = os.fork()
      own = bytearray(bytes([7]) * (8 << 20))
      if not other:
          while True: time.sleep(0.01)
      print("ready", flush=True)
      for line in sys.stdin:
          print(sum(shared[::4096]) + sum(own[::4096]), flush=True)
      """
    let victim = try Victim(ready: ["python3", "-c", program])
    let sum = try victim.ask("sum")
    let summary = try trim(victim, by: [mechanism])
    #expect(summary.swapped > 8 << 20, "\(summary)")
    #expect(summary.residentAfter > 8 << 20, "\(summary)")
    #expect(try victim.ask("sum") == sum)
    #expect(try victim.target.discover().processes.count == 2)
  }

  @Test(
    "Locked memory stays in RAM", .enabled(if: TestSwap.isAvailable, "no swap can be made here"),
    arguments: direct)
  func locked(mechanism: TrimSummary.Mechanism) throws {
    let victim = try Victim(ready: [try Fixture.compile("mlocked")])
    let sum = try victim.ask("sum")
    let summary = try trim(victim, by: [mechanism])
    #expect(summary.residentAfter >= 1 << 20, "\(summary)")
    #expect(try victim.ask("sum") == sum)
  }

  @Test(
    "A worker that another program has stopped isn't touched by borrowed threads",
    .enabled(if: TestSwap.isAvailable, "no swap can be made here"))
  func stoppedByOthers() throws {
    let victim = try Victim(ready: Self.command(threads: 1))
    try victim.suspend()
    let error = #expect(throws: HibernationError.self) {
      try trim(victim, by: [.borrowedThread])
    }
    #expect(error?.aftermath == .intact)
    #expect(error?.reason.contains("was stopped by another program") == true, "\(error as Any)")
    #expect(try victim.isSuspended)
  }

  @Test(
    "A worker that never waits runs on, and the refusal says so",
    .enabled(if: TestSwap.isAvailable, "no swap can be made here"))
  func busy() throws {
    let victim = try Victim(ready: [try Fixture.compile("busy")])
    // Once it has used some processor time, it has left the call that wrote its line.
    try #require(try eventually { try ProcessStat.read(victim.process.pid).cpuTicks >= 3 })
    let error = #expect(throws: HibernationError.self) {
      try trim(victim, by: [.borrowedThread])
    }
    #expect(error?.aftermath == .intact)
    #expect(error?.reason.contains("busy") == true, "\(error as Any)")
    #expect(try victim.target.discover().processes.allSatisfy { $0.state != .stopped })
  }

  @Test("Without swap, or if all of it is in use, the refusal says what to do")
  func noSwap() {
    #expect(Hibernator.swapObstacle(areas: [])?.contains("there is no swap") == true)
    let full = SwapArea(name: "/s", kind: "file", size: 4096, used: 4096)
    #expect(Hibernator.swapObstacle(areas: [full])?.contains("in use") == true)
    let free = SwapArea(name: "/t", kind: "file", size: 8192, used: 4096)
    #expect(Hibernator.swapObstacle(areas: [full, free]) == nil)
  }
}
