import Testing

@testable import Hibernation
@testable import Linux

/// The torture victim checks its whole heap, stacks, thread-locals, and each of its system calls.
@Suite(.serialized)
struct TortureTests {
  let service = HibernationService()

  @Test(
    "a process with a thread in every kind of blocking call keeps every byte over 100 rounds",
    arguments: Victim.Rest.available)
  func hundredRounds(rest: Victim.Rest) throws {
    let victim = try Victim([try Fixture.compile("torture"), "8", "16", "7"], rest: rest)
    #expect(try victim.line().hasPrefix("ready"))
    let sum = try victim.ask("sum")
    for round in 1...100 {
      try victim.suspend()
      let path = Fixture.imagePath()
      let target = victim.target
      let before = try victim.anonymousMemory()
      let slept = try service.wait { (h) throws(HibernationError) in
        try h.hibernate(target, to: path)
      }
      #expect(slept.moved > 8 << 20)
      #expect(try victim.anonymousMemory() <= 256 << 10, "of \(before)")
      _ = try service.wait { (h) throws(HibernationError) in try h.resume(target, from: path) }
      try #require(try victim.ask("sum") == sum, "round \(round)")
    }
    #expect(try victim.ask("wake").hasPrefix("woke"))
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }
}
