import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// A worker that can't be hibernated is refused with a reason, stays suspended, and runs afterwards
/// as before.
@Suite(.serialized)
struct RefusalTests {
  let service = HibernationService()

  @Test(arguments: Nightly.one(of: Victim.Parking.available))
  func `A process that never waits is refused as busy`(parking: Victim.Parking) throws {
    let victim = try Victim(ready: "busy", parking: parking)
    // After two ticks of processor time it is past its last system call.
    let start = try ProcessStat.read(victim.process.pid).cpuTicks
    #expect(try eventually { try ProcessStat.read(victim.process.pid).cpuTicks >= start + 2 })
    let error = try victim.refusal(service)
    #expect(error.description.hasPrefix("busy"))
    #expect(error.aftermath == .intact)
    #expect(try victim.isSuspended)
    try victim.carryOn()
    let before = try ProcessStat.read(victim.process.pid).cpuTicks
    #expect(try eventually { try ProcessStat.read(victim.process.pid).cpuTicks > before })
  }

  @Test("A worker is refused, and unchanged, on a kernel on which it wouldn't survive its resume")
  func unsafeKernel() throws {
    var features = KernelFeatures.detect()
    features.restoreObstacle = "this kernel ends a process whose memory was restored"
    let victim = try Victim(ready: "mlocked")
    let sum = try victim.ask("sum")
    let error = try victim.refusal(HibernationService(features: features))
    #expect(error.description.contains("this kernel ends a process"))
    #expect(error.aftermath == .ineligible)
    #expect(try victim.isSuspended)
    try victim.carryOn()
    #expect(try victim.ask("sum") == sum)
  }

  @Test("A seccomp filter is suspended during a hibernation, or the process is refused")
  func seccomp() throws {
    let victim = try Victim(ready: "seccomped")
    do {
      for _ in 0..<3 {
        try victim.cycle(service)
        #expect(try victim.ask("hello") == "hello")
      }
    } catch let error as HibernationError {
      #expect(error.description.contains("seccomp filter"))
      #expect(error.aftermath == .ineligible)
      try victim.carryOn()
      #expect(try victim.ask("hello") == "hello")
    }
  }

  @Test func `A process is refused while another process traces it`() throws {
    let victim = try Victim(ready: "torture", "1", "0", "1")
    let sum = try victim.ask("sum")
    try victim.suspend()
    let error = try whileTraced(victim.process.pid) { try victim.refusal(service) }
    #expect(error.description.contains("is traced by process"))
    #expect(error.aftermath == .intact)
    try victim.cycle(service)
    #expect(try victim.ask("sum") == sum)
  }

  @Test
  func `A worker whose first process has left its cgroup is neither hibernated nor trimmed`()
    throws
  {
    guard let other = try Victim.makeGroup(for: .frozen) else {
      return notTestedHere("no cgroup for workers can be made here")
    }
    defer {
      try? other.kill()
      try? other.remove(until: Deadline(in: .seconds(60)))
    }
    let victim = try Victim(ready: "torture", "1", "0", "1", parking: .frozen)
    try other.add(victim.process.pid)
    let (target, path) = (victim.target, Fixture.imagePath())
    let trim = TrimRequest(HibernationRequest(target, to: path), record: path + ".trim")
    let trimRefusal = #expect(throws: HibernationError.self) { try service.trim(trim) }
    let errors = [try #require(trimRefusal), try victim.refusal(service, at: path)]
    for error in errors {
      #expect(error.reason.contains("(pid \(target.root.pid)) has moved to another cgroup"))
      #expect(error.aftermath == .intact)
    }
    #expect(!fileExists(path))
    #expect(try victim.ask("sum").hasPrefix("sum"))
  }

  @Test(arguments: Nightly.one(of: Victim.Parking.available))
  func `A foreign SIGCONT doesn't wake a hibernated process`(parking: Victim.Parking) throws {
    let victim = try Victim(ready: "sigcont", parking: parking)
    let path = try victim.sleep(service)
    let asleep = try victim.anonymousMemory()
    kill(victim.process.pid, SIGCONT)
    kill(victim.process.pid, SIGUSR1)
    usleep(20_000)
    #expect(try victim.anonymousMemory() == asleep)
    try victim.wake(service, from: path)
    let line = try victim.line()
    #expect(line.hasPrefix("sigcont ") && line != "sigcont 0")
  }
}
