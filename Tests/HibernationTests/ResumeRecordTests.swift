import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// What a resume does before the worker's record on disk says that the worker is being resumed. A daemon that finds a record of a
/// hibernated worker without an image ends that worker.
@Suite(.serialized)
struct ResumeRecordTests {
  @Test(
    "Before a resume is recorded, its image is there, the worker rests and the standby pager doesn't know of it",
    .enabled(
      if: Victim.cgroupRoot != nil && LazyRestoreTests.isPermitted(), "userfaultfd takes root"),
    arguments: [RestoreMode.eager, .lazy(learns: true)])
  func order(mode: RestoreMode) throws {
    let announced = Fixture.imagePath()
    let service = HibernationService()
    service.set(try Standby(command: ["/bin/sh", "-c", "cat > \(announced)"]))
    let victim = try Victim([try Fixture.compile("layers"), "1024"], rest: .frozen)
    try #require(try victim.line().hasPrefix("ready"))
    let path = Fixture.imagePath()
    try victim.suspend()
    let target = victim.target
    _ = try service.wait { (h) throws(HibernationError) in
      try h.hibernate(
        HibernationRequest(target, to: path, restore: mode == .eager ? .eager : .lazy))
    }
    let calls = Mutex(0)
    let cgroup = try #require(victim.cgroup)
    let resumed = try service.wait { (h) throws(HibernationError) in
      try h.resume(target, from: RestingImage(path: path, mode)) {
        calls.withLock { $0 += 1 }
        // What had been announced would have arrived by now.
        usleep(30_000)
        #expect(access(path, F_OK) == 0)
        #expect((try? cgroup.isFrozen) == true)
        #expect((try? readText(announced)) ?? "" == "")
      }
    }
    #expect(resumed.eagerReason == nil)
    #expect(calls.withLock { $0 } == 1)
    #expect(try victim.ask("verify") == "same")
    try service.awaitFill(of: target.name)
    #expect(access(path, F_OK) != 0)
  }
}
