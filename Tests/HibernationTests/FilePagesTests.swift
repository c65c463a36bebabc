import Glibc
import Testing

@testable import Hibernation
@testable import Linux

/// Clean pages of files, pushed out of memory while their worker sleeps.
@Suite(.serialized)
struct FilePagesTests {
  let service = HibernationService()

  @Test(
    "a program that nobody else runs leaves memory, and runs on as it was",
    arguments: Victim.Rest.available)
  func pushedOut(rest: Victim.Rest) throws {
    // A copy: pages of the one that other tests run are theirs, too.
    let program = try Fixture.copy(try Fixture.compile("torture"))
    defer { unlink(program) }
    let victim = try Victim([program, "2", "6", "3"], rest: rest)
    #expect(try victim.line().hasPrefix("ready"))
    let sum = try victim.ask("sum")
    for _ in 0..<3 {
      let path = Fixture.imagePath()
      let summary = try victim.sleep(service, at: path, dropsFilePages: true)
      let files = try #require(summary.filePages)
      if let refusal = files.refusal {
        #expect(refusal.code == EPERM, "\(refusal)")
      } else {
        // Those that are written to disk already: what was just copied may not be yet.
        let resident = try Self.resident(program, of: victim)
        #expect(files.dropped > 0 || resident == 0, "\(resident) bytes of it stay")
      }
      try victim.wake(service, from: path)
      #expect(try victim.ask("sum") == sum)
    }
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }

  @Test("nothing of it happens where it wasn't asked for")
  func notAsked() throws {
    let victim = try Victim([try Fixture.compile("torture"), "1", "2", "3"])
    #expect(try victim.line().hasPrefix("ready"))
    #expect(try victim.cycle(service).filePages == nil)
  }

  private static func resident(_ program: String, of victim: Victim) throws -> UInt64 {
    try MemoryMapping.all(of: victim.process.pid).filter { $0.name == program }
      .reduce(0) { $0 + $1.resident - $1.anonymous }
  }
}
