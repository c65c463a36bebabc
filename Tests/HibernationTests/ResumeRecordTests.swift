import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The steps of a resume before the worker's record on disk says that the worker is being resumed.
/// A daemon that finds a record of a hibernated worker without an image ends that worker.
@Suite(.serialized)
struct ResumeRecordTests {
  private static func isReadable(_ socket: Descriptor) -> Bool {
    var polled = pollfd(fd: socket.raw, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, 0) == 1 && polled.revents & Int16(POLLIN) != 0
  }

  @Test(
    "Until a resume is recorded, its image exists, the worker rests, and no pager knows of it",
    .needsUserfaults,
    arguments: [RestoreMode.eager, .lazy(learns: true)])
  func order(mode: RestoreMode) throws {
    let service = HibernationService()
    // The program never reads, so what is sent to it stays in its socket.
    let standby = try StandbyPagerConnection(command: ["/bin/sleep", "600"])
    defer { sendSignal(SIGKILL, to: standby.process.pid) }
    let announced = try Userfault.duplicate(0, of: standby.process.pid)
    service.set(standby)
    let victim = try Victim(ready: "layers", "1024", parking: .frozen)
    let path = Fixture.imagePath()
    let target = victim.target
    try victim.sleep(service, at: path, restore: mode == .eager ? .eager : .lazy)
    let calls = Mutex(0)
    let cgroup = try #require(victim.cgroup)
    let resumed = try service.resume(target, from: RestingImage(path: path, mode)) {
      calls.withLock { $0 += 1 }
      #expect(access(path, F_OK) == 0)
      #expect((try? cgroup.isFrozen) == true)
      #expect(!Self.isReadable(announced))
      return nil
    }
    #expect(resumed.eagerReason == nil)
    #expect(Self.isReadable(announced) == (mode != .eager))
    #expect(calls.withLock { $0 } == 1)
    #expect(try victim.ask("verify") == "same")
    try service.awaitFill(of: target.name)
    #expect(access(path, F_OK) != 0)
  }
}
