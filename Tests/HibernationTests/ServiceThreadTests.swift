import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The kernel accepts a call of ptrace only from the thread that attached. A worker that nothing
/// traces needs no thread.
@Suite(.serialized)
struct ServiceThreadTests {
  let service = HibernationService(keptThreads: 0)

  @Test(
    "A worker that rests frozen can do without the service's thread, and another one resumes it",
    .needsCgroup)
  func frozen() throws {
    let victim = try Victim(ready: "torture", "2", "4", "7", parking: .frozen)
    let sum = try victim.ask("sum")
    let path = Fixture.imagePath()
    for _ in 0..<3 {
      try victim.sleep(service, at: path)
      #expect(try eventually { !service.hasThread(of: "") })
      try victim.wake(service, from: path)
      #expect(try victim.ask("sum") == sum)
      #expect(try eventually { !service.hasThread(of: "") })
    }
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }

  @Test("A worker that rests traced keeps the thread that traces it until it is resumed")
  func traced() throws {
    let victim = try Victim(ready: "torture", "2", "4", "7", parking: .traced)
    let sum = try victim.ask("sum")
    let path = try victim.sleep(service)
    let tracer = try ProcessStatus.read(victim.process.pid).tracer
    #expect(tracer != 0)
    // This is longer than a thread that may leave waits for a job.
    pauseThread(for: Thread.idleTime + .seconds(1))
    #expect(service.hasThread(of: ""))
    #expect(try ProcessStatus.read(victim.process.pid).tracer == tracer)
    try victim.wake(service, from: path)
    #expect(try victim.ask("sum") == sum)
    #expect(try eventually { !service.hasThread(of: "") })
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }
}
