import Glibc
import Testing

@testable import Hibernation
@testable import Linux

/// Lazy restores with a known working set, whose pages lie beside other pages.
@Suite(.serialized, .needsUserfaults)
struct WorkingSetTests {
  let service = HibernationService()

  @Test("Pages beside those of the working set are restored", arguments: [2, 7, 64, 700])
  func scattered(every: Int) throws {
    let victim = try Victim(ready: "torture", "8", "6", "7", parking: .frozen)
    let sum = try victim.ask("sum")
    let path = Fixture.imagePath()
    let (target, identity) = (victim.target, victim.process.identity)
    for round in 1...4 {
      let private_ = try MemoryMapping.all(of: victim.process.pid).filter(PagePlan.canMove)
      let pages = private_.filter { !$0.hasFile }.flatMap {
        Array(stride(from: $0.start, to: $0.end, by: Int(pageSize)))
      }
      let learned = Set(stride(from: round, to: pages.count, by: every).map { pages[$0] })
      try victim.suspend()
      let woken = try service.wait { (h) throws(HibernationError) in
        h.workingSets[target.name] = [identity: WorkingSet(pages: learned)]
        _ = try h.hibernate(HibernationRequest(target, to: path, restore: .lazy))
        return try h.resume(target, from: RestingImage(path: path, .lazy(learns: true)))
      }
      #expect(woken.eagerReason == nil)
      #expect(woken.backgroundFill > 0)
      try victim.send("sum")
      try service.awaitFill(of: target.name)
      try #require(try victim.line() == sum, "round \(round)")
      try #require(try victim.ask("sum") == sum, "round \(round), all there")
    }
  }

  @Test(
    "Rare operations of a program work while pages are missing",
    arguments: [
      ("wipe", "child 0"), ("leave", "left 0"), ("drop", "dropped 0"),
    ])
  func edges(command: String, answer: String) throws {
    // The kernel writes to the thread block when a thread continues, if the block is registered
    // (rseq).
    let victim = try Victim(
      ready: "edges", parking: .frozen, environment: ["GLIBC_TUNABLES": "glibc.pthread.rseq=0"])
    let path = Fixture.imagePath()
    let target = victim.target
    try victim.sleep(service, at: path, restore: .lazy)
    try victim.send(command)
    let woken = try service.resume(target, from: RestingImage(path: path, .lazy(learns: true)))
    #expect(woken.backgroundFill > 4 << 20)
    #expect(try victim.line() == answer)
    try service.awaitFill(of: target.name)
  }
}
