import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Pagers of trimmed workers that have needed nothing for a while: they have dropped what they can
/// read again.
@Suite(.serialized, .needsUserfaults)
struct QuietPagerTests {
  let service = HibernationService()

  private func trim(_ victim: Victim, to path: String) throws {
    let request = TrimRequest(
      HibernationRequest(victim.target, to: path), record: path + ".trim", mechanism: .userfaultfd)
    _ = try service.wait { (h) throws(HibernationError) in
      h.listsDropAfter = 10
      return try h.trim(request)
    }
  }

  private func waitForDroppedLists(of victim: Victim) throws {
    let name = victim.target.name
    let areDropped = try eventually {
      try service.wait { (h) throws(HibernationError) in
        h.fills[name]?.trimEnd?.listsAreDropped.load(ordering: .relaxed) == true
      }
    }
    try #require(areDropped)
  }

  @Test("A worker whose pager has no lists gets its pages, is trimmed again, and is filled")
  func returns() throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("torture"), "16", "4", "7"])
    let sum = try victim.ask("sum")
    for _ in 0..<2 {
      try trim(victim, to: path)
      try waitForDroppedLists(of: victim)
      #expect(try victim.ask("wake").hasPrefix("woke"))
      try waitForDroppedLists(of: victim)
    }
    // It is trimmed again, and filled, while the pager has no lists.
    try trim(victim, to: path)
    try waitForDroppedLists(of: victim)
    try #require(try victim.ask("sum") == sum)
    try waitForDroppedLists(of: victim)
    try service.fill(victim.target)
    #expect(!fileExists(path))
    #expect(try victim.ask("sum") == sum)
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }

  @Test(
    "A worker that drops, moves and forks memory while its pager has no lists keeps its content")
  func changes() throws {
    let (victim, path) = try Victim.ready(Fixture.churn())
    for round in 1...3 {
      try trim(victim, to: path)
      try waitForDroppedLists(of: victim)
      try #require(try victim.ask("churn \(round)").hasSuffix("errors 0"), "round \(round)")
      try #require(try victim.isWhole, "round \(round)")
    }
  }

  @Test("A hibernation of a worker whose pager has no lists keeps what is missing")
  func hibernates() throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("torture"), "16", "4", "7"])
    let sum = try victim.ask("sum")
    try trim(victim, to: path)
    try waitForDroppedLists(of: victim)
    let target = victim.target
    let missing = try #require(try service.freezeTrimmed(target.name))
    #expect(missing.bytes > 8 << 20)
    try service.wait { (h) throws(HibernationError) in
      let summary = try h.hibernate(HibernationRequest(target, to: path))
      _ = try h.resume(target, from: summary.image)
    }
    #expect(try victim.ask("sum") == sum)
  }

  private static func makeBlocking(_ handle: FaultHandle) {
    let flags = fcntl(handle.userfault.descriptor.raw, F_GETFL)
    _ = fcntl(handle.userfault.descriptor.raw, F_SETFL, flags & ~O_NONBLOCK)
  }

  /// The worker has the same open file as its pager.
  @Test("A worker that makes its userfaultfd blocking gets its pages, and its pager rests again")
  func becomesBlocking() throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("torture"), "16", "4", "7"])
    let sum = try victim.ask("sum")
    try trim(victim, to: path)
    try waitForDroppedLists(of: victim)
    let handle = try #require(try FaultHandle.find(in: victim.process.identity))
    Self.makeBlocking(handle)
    try #require(try victim.ask("sum") == sum)
    let isRepaired = try eventually {
      fcntl(handle.userfault.descriptor.raw, F_GETFL) & O_NONBLOCK != 0
    }
    #expect(isRepaired)
    try waitForDroppedLists(of: victim)
  }

  @Test("A worker that makes its userfaultfd blocking all the time is filled, and loses nothing")
  func staysBlocking() throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("torture"), "16", "4", "7"])
    let sum = try victim.ask("sum")
    try trim(victim, to: path)
    let handle = try #require(try FaultHandle.find(in: victim.process.identity))
    let end = Semaphore()
    let isStarted = Thread.start(name: "test") {
      while !end.wait(within: .zero) { Self.makeBlocking(handle) }
    }
    #expect(isStarted)
    let filled = Result { try service.fill(victim.target) }
    end.signal()
    #expect(try filled.get().swapped == 0)
    #expect(!fileExists(path))
    #expect(try victim.ask("sum") == sum)
  }

  @Test("Pagers that need no lists have no threads, and end when their workers end")
  func ends() throws {
    let command = [try Fixture.compile("torture"), "16", "4", "7"]
    let victims = try (0..<12).map { _ in try Victim(ready: command, parking: .frozen) }
    for victim in victims { try trim(victim, to: Fixture.imagePath()) }
    for victim in victims { try waitForDroppedLists(of: victim) }
    // Other tests may have pagers that run.
    let areResting = try eventually {
      let running = try threads(of: getpid()).filter { thread in
        let name = try readIfPossible { () throws(SystemCallError) in
          try readText("/proc/self/task/\(thread)/comm")
        }
        return name?.hasPrefix("dormouse-pager") == true
      }
      return running.count < victims.count / 2
    }
    #expect(areResting)
    for victim in victims { kill(victim.target.root.pid, SIGKILL) }
    for victim in victims {
      let name = victim.target.name
      let hasEnded = try eventually {
        try service.wait { (h) throws(HibernationError) in h.fills[name]?.hasEnded != false }
      }
      #expect(hasEnded)
    }
  }
}
