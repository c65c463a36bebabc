import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Trims by userfaultfd of workers that are trimmed already: what is missing stays on disk.
@Suite(.serialized, .needsUserfaults)
struct FurtherTrimTests {
  let service = HibernationService()

  /// Returns the error of a trim that has no room for its image once the worker stands still.
  private func refusedTrim(_ victim: Victim, to path: String) -> HibernationError? {
    var image = HibernationRequest(victim.target, to: path)
    let pid = victim.process.pid
    // A worker that has ended has no state.
    image.obstacle = { _ in (try? ProcessStat.read(pid).state) == .traced ? "no room" : nil }
    let request = TrimRequest(image, record: path + ".trim", mechanism: .userfaultfd)
    return #expect(throws: HibernationError.self) { try service.trim(request) }
  }

  private func fill(_ victim: Victim, _ path: String) throws {
    try service.fill(victim.target)
    #expect(!fileExists(path))
    #expect(try !hasUserfaults(victim.process.pid))
  }

  @Test(
    "A further trim writes and frees only what is in memory, and the rest stays on disk",
    arguments: [false, true])
  func onlyResident(keepsBase: Bool) throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("torture"), "16", "4", "7"])
    let sum = try victim.ask("sum")
    let first = try service.trim(victim.target, to: path, keepsBase: keepsBase)
    let missing = try #require(first.missing).bytes
    try #require(missing > 8 << 20)
    // On a busy machine it may not have been copied ahead. The next image then gets all of the
    // earlier one.
    let hasBase = fileExists(path + ".base")
    for _ in 0..<4 {
      #expect(try victim.ask("wake").hasPrefix("woke"))
      let next = try service.trim(victim.target, to: path, keepsBase: keepsBase)
      #expect(next.residentBefore < first.residentBefore / 2, "\(next)")
      #expect(!hasBase || next.written < first.written / 2, "\(next)")
      #expect(try #require(next.missing).bytes > missing / 2, "\(next)")
      #expect(try victim.target.isFrozen() == false)
    }
    #expect(try victim.ask("sum") == sum)
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
    try fill(victim, path)
    #expect(fileExists(path + ".base") == keepsBase)
    #expect(try victim.ask("sum") == sum)
    // From here on its mappings are ordinary ones again.
    let again = try service.trim(victim.target, to: path, keepsBase: keepsBase)
    #expect(try #require(again.missing).bytes > missing / 2)
    try fill(victim, path)
    #expect(try victim.ask("sum") == sum)
  }

  @Test func `A worker that has used nothing new since its last trim can be trimmed again`() throws
  {
    let (victim, path) = try Victim.ready(
      [
        "python3", "-c",
        """
        import sys
        objects = [str(number) * 4 for number in range(200_000)]
        print("ready", flush=True)
        for line in sys.stdin: print(sum(map(len, objects)), flush=True)
        """,
      ])
    let sum = try victim.ask("sum")
    let first = try service.trim(victim.target, to: path)
    for _ in 0..<5 {
      let next = try service.trim(victim.target, to: path)
      #expect(next.residentAfter <= first.residentAfter + (1 << 20), "\(next)")
    }
    #expect(try victim.ask("sum") == sum)
  }

  @Test(
    "Memory that was changed, dropped, moved and forked between further trims keeps its contents",
    arguments: [["drops"], []])
  func changes(kinds: [String]) throws {
    let (victim, path) = try Victim.ready(Fixture.churn() + kinds)
    for round in 1...Nightly.rounds(6, of: 40) {
      try service.trim(victim.target, to: path, keepsBase: round % 2 == 0)
      if round % 3 != 0 {
        try #require(try victim.ask("churn \(round)").hasSuffix("errors 0"), "round \(round)")
      }
      if round % 4 == 0 { try #require(try victim.isWhole, "round \(round)") }
    }
    try #require(try victim.isWhole)
    try fill(victim, path)
    try #require(try victim.isWhole)
  }

  @Test("An image without a base hands its chunks on")
  func withoutBase() throws {
    // It has less than 4 MB, so that its memory isn't copied ahead.
    let (victim, path) = try Victim.ready([try Fixture.compile("churn"), "1", "1", "64", "drops"])
    try service.trim(victim.target, to: path)
    let first = try ImageReader(path: path)
    #expect(first.reference == nil)
    for _ in 0..<3 {
      try service.trim(victim.target, to: path)
      let next = try ImageReader(path: path)
      #expect(next.reference == nil)
      #expect(next.dataLength > first.dataLength / 2)
      try next.verify()
    }
    try #require(try victim.isWhole)
    try fill(victim, path)
  }

  @Test("A further trim that fails leaves the worker trimmed, with its earlier image")
  func failure() throws {
    let (victim, path) = try Victim.ready(Fixture.churn("drops"))
    let missing = try #require(try service.trim(victim.target, to: path).missing)
    let before = try ImageReader(path: path).id
    // On a busy machine it may not have been copied ahead.
    let hasBase = fileExists(path + ".base")
    for _ in 0..<3 {
      let error = refusedTrim(victim, to: path)
      #expect(error?.aftermath == .intact)
      #expect(error?.reason == "no room")
      #expect(try ImageReader(path: path).id == before)
      #expect(try eventually { try !victim.target.isFrozen() })
      #expect(missing.bytes > 0)
      #expect(fileExists(path + ".base") == hasBase)
      // No later daemon sends it SIGCONT: nothing is stopped.
      let (name, process) = (victim.target.name, victim.process.identity)
      let phase = try service.wait { (h) throws(HibernationError) in
        h.handles[name]?[process]?.journal.phase
      }
      #expect(phase == .trimmed)
    }
    try #require(try victim.ask("churn 1").hasSuffix("errors 0"))
    try service.trim(victim.target, to: path)
    #expect(try ImageReader(path: path).id != before)
    try #require(try victim.isWhole)
    try fill(victim, path)
    #expect(!fileExists(path + ".base"))
  }

  @Test("What a trimmed worker has used since a trim stays in RAM at the next one")
  func staysInMemory() throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("torture"), "24", "4", "7"])
    func cameBack(after summary: TrimSummary) throws -> UInt64 {
      let missing = try #require(summary.missing)
      let before = missing.bytes
      for _ in 0..<3 { #expect(try victim.ask("wake").hasPrefix("woke")) }
      return before - missing.bytes
    }
    let first = try cameBack(after: try service.trim(victim.target, to: path))
    try #require(first > 0)
    // The image has no page of these.
    let second = try cameBack(after: try service.trim(victim.target, to: path))
    let third = try cameBack(after: try service.trim(victim.target, to: path))
    #expect(second < first && third < first, "\(first), \(second), \(third)")
    try fill(victim, path)
  }

  @Test("A worker that needs most of its memory is copied as a whole again")
  func muchResident() throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("torture"), "24", "4", "7"])
    let sum = try victim.ask("sum")
    let first = try service.trim(victim.target, to: path)
    #expect(try victim.ask("sum") == sum)
    let next = try service.trim(victim.target, to: path)
    #expect(next.written > first.written / 2)
    #expect(try victim.ask("sum") == sum)
    try fill(victim, path)
  }

  @Test("A trim after a takeover by another daemon writes only what is in memory")
  func afterTakeover() throws {
    let probe = try Probe(Fixture.churn("drops"), parking: .frozen)
    try probe.perform("trim to image")
    try probe.daemonDies(by: SIGKILL)
    let (target, image) = (probe.target, probe.image)
    try service.recover(target, from: image, keepsTrims: true)
    for _ in 0..<2 {
      let summary = try service.trim(target, to: image)
      #expect(try #require(summary.missing).bytes > UInt64(summary.residentBefore))
    }
    try #require(try probe.talk.ask("verify").hasSuffix("errors 0"))
    try service.fill(target)
    #expect(isGone(image))
    try #require(try probe.talk.ask("verify").hasSuffix("errors 0"))
  }

  /// The points that a further trim passes, where the first one has passed them once.
  static let points: [(FaultPoint, time: Int)] = [
    (.trimHandedOver, 1), (.stopped, 2), (.seized, 2), (.scanned, 2), (.captured, 2),
    (.committed, 2), (.trimUnregistered, 1), (.evicted, 2), (.restored, 2), (.frozen, 2),
    (.detached, 2), (.rested, 2), (.fillMarked, 2), (.registered, 2), (.fillPrepared, 2),
    (.trimmed, 2),
  ]

  @Test(
    "A daemon killed at any step of a further trim loses nothing",
    arguments: points, Nightly.one(of: [false, true]))
  func everyStep(point: (FaultPoint, time: Int), hasStandby: Bool) throws {
    let keepsTrims = !hasStandby
    let probe = try Probe(
      Fixture.churn("drops"), parking: .frozen,
      fault: point.0, time: point.time, hasStandby: hasStandby)
    try probe.perform("trim to image")
    try #require(try probe.talk.ask("churn 2").hasSuffix("errors 0"))
    try probe.die(during: "trim to image")
    try probe.talk.send("verify")
    let (target, image) = (probe.target, probe.image)
    try service.adoptTrimmed(probe, keepsTrims: keepsTrims)
    try #require(try probe.talk.line().hasSuffix("errors 0"), "\(point.0)")
    #expect(try probe.target.isFrozen() == false)
    for _ in 0..<2 {
      try service.trim(target, to: image)
      try #require(try probe.talk.ask("verify").hasSuffix("errors 0"))
    }
    try service.fill(target)
    #expect(isGone(image))
    try #require(try probe.talk.ask("churn 3").hasSuffix("errors 0"))
    service.forget(target.name)
  }
}
