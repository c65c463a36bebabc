import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Clean pages of files that are dropped from memory while their worker sleeps.
@Suite(.serialized)
struct FilePagesTests {
  let service = HibernationService()

  @Test(
    "Pages of a program that no other process runs leave memory, and it continues unchanged",
    arguments: Nightly.one(of: Victim.Parking.available))
  func pushedOut(parking: Victim.Parking) throws {
    // The test uses a copy of the program: other tests use the pages of the original, too.
    let program = try Fixture.copy(try Fixture.compile("torture"))
    defer { unlink(program) }
    // Only pages that are written to disk can leave memory.
    _ = try Fixture.run(["sync", program])
    let victim = try Victim(ready: [program, "2", "6", "3"], parking: parking)
    let sum = try victim.ask("sum")
    for _ in 0..<3 {
      let path = Fixture.imagePath()
      let summary = try victim.sleep(service, at: path, dropsFilePages: true)
      let files = try #require(summary.filePages)
      if let refusal = files.refusal {
        #expect(refusal.code == EPERM, "\(refusal)")
      } else {
        // The copy may not be on the disk yet, and only pages on the disk can leave memory.
        let resident = try Self.resident(program, of: victim)
        #expect(files.dropped > 0 || resident == 0, "\(resident) bytes of it stay")
      }
      try victim.wake(service, from: path)
      #expect(try victim.ask("sum") == sum)
    }
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }

  @Test func `Pages of files stay in memory if the request doesn't ask to push them out`() throws {
    let victim = try Victim(ready: "torture", "1", "2", "3")
    #expect(try victim.cycle(service).filePages == nil)
  }

  @Test func `A copy of a page of code stays: the kernel has made it for a breakpoint`() {
    var mapping = MemoryMapping(
      start: 0x1000, end: 0x2000, readable: true, executable: true, hasFile: true, anonymous: 4096)
    #expect(!PagePlan.canMove(mapping))
    mapping.executable = false
    #expect(PagePlan.canMove(mapping))
  }

  @Test func `A shadow stack stays: recent kernels permit no userfaultfd for it`() {
    var mapping = MemoryMapping(
      start: 0x1000, end: 0x2000, readable: true, writable: true, anonymous: 4096)
    #expect(PagePlan.canMove(mapping))
    mapping.flags.insert(.shadowStack)
    #expect(!PagePlan.canMove(mapping))
  }

  private static func resident(_ program: String, of victim: Victim) throws -> UInt64 {
    try MemoryMapping.all(of: victim.process.pid).filter { $0.name == program }
      .reduce(0) { $0 + $1.resident - $1.anonymous }
  }
}
