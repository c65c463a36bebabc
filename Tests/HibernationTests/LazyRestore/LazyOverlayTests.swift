import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Lazy restores of workers whose images have only the pages that have changed since an earlier
/// one.
@Suite(.serialized, .needsUserfaults)
struct LazyOverlayTests {
  private let path = Fixture.imagePath()

  private func sleep(
    _ victim: Victim, _ service: HibernationService, keepsWorkingSet: Bool = false
  ) throws(HibernationError) -> HibernationSummary {
    try service.awaitFill(of: victim.target.name)
    try attempt(.stopping) { try victim.suspend() }
    return try service.hibernate(
      HibernationRequest(
        victim.target, to: path, restore: .lazy, overlay: true, keepsWorkingSet: keepsWorkingSet))
  }

  private func wake(
    _ victim: Victim, _ service: HibernationService
  ) throws -> ResumeSummary {
    try service.resume(
      victim.target, from: RestingImage(path: path, .lazy(learns: true)), keepsBase: true)
  }

  @Test(
    "Threads that write all the time find what they have written, whatever was taken from a base",
    arguments: Nightly.oneOfEach(
      ["", "forks", "grows"].map { other in [false, true].map { ($0, other) } }))
  func scribble(tracks: Bool, other: String) throws {
    let forks = other == "forks"
    var features = KernelFeatures.detect()
    if !tracks { features.writeTracking = false }
    let service = HibernationService(features: features)
    let victim = try Victim(
      ready: [try Fixture.compile("scribble"), "4", "16"] + (other.isEmpty ? [] : [other]),
      parking: .frozen)
    var random = TestRandom(seed: UInt64(other.count))
    var unchanged = 0
    var round = 0
    // On a busy machine the threads may have written everything in each of the rounds.
    while round < Self.rounds || unchanged == 0 && round < 5 * Self.rounds {
      round += 1
      let slept: HibernationSummary
      do throws(HibernationError) {
        slept = try sleep(victim, service, keepsWorkingSet: round % 2 == 0)
      } catch {
        // A child that has just been forked shares all of its parent's memory: then there is
        // nothing to move.
        try #require(
          forks && error.reason.contains("no memory to move"), "round \(round): \(error)")
        try victim.cgroup?.thaw(until: Deadline(in: .seconds(60)))
        continue
      }
      if slept.unchanged > 2 << 20 { unchanged += 1 }
      let woken = try wake(victim, service)
      if !forks { #expect(woken.eagerReason == nil, "round \(round)") }
      // All pages are read at a random moment: while they are filled, during the hand-over, or
      // later.
      usleep(UInt32.random(in: 0..<60_000, using: &random))
      let answer = try victim.ask("verify")
      try #require(answer.hasSuffix("errors 0"), "round \(round): \(answer)")
    }
    #expect(unchanged > 0)
    try service.awaitFill(of: victim.target.name)
    #expect(try victim.ask("verify").hasSuffix("errors 0"))
    service.forget(victim.target.name)
  }

  /// The number of rounds. DORMOUSE_SCRIBBLE_ROUNDS=500 runs more of them.
  static let rounds = Nightly.rounds(6, of: 25, variable: "DORMOUSE_SCRIBBLE_ROUNDS")

  @Test("What a worker hasn't written since a lazy restore is known, and not compared")
  func tracked() throws {
    let service = HibernationService()
    guard KernelFeatures.detect().writeTracking else { return notTestedHere("Linux 6.7") }
    let victim = try Victim(ready: "churn", "2", "16", "64", parking: .frozen)
    var trackedCount = 0
    // On a busy machine the worker may not be frozen in 20 ms. Its pages are then compared.
    for round in 1...30 where round <= 6 || trackedCount < 2 {
      let slept = try sleep(victim, service)
      if slept.unchanged > 8 << 20, slept.compared < 1 << 20 { trackedCount += 1 }
      _ = try wake(victim, service)
    }
    #expect(trackedCount >= 2)
    #expect(try victim.ask("verify").hasSuffix("errors 0"))
    service.forget(victim.target.name)
  }

  @Test("A program that replaces itself while its pages are filled, or just after that, isn't lost")
  func exec() throws {
    let service = HibernationService()
    let victim = try Victim(ready: "scribble", "2", "8", parking: .frozen)
    var random = TestRandom(seed: 5)
    for round in 1...Nightly.rounds(5, of: 15) {
      _ = try sleep(victim, service)
      _ = try wake(victim, service)
      // The program is replaced at a random moment of the fill, or just after it.
      usleep(UInt32.random(in: 0..<30_000, using: &random))
      #expect(try victim.ask("exec").hasPrefix("ready"), "round \(round)")
      try service.awaitFill(of: victim.target.name)
      #expect(try victim.ask("verify").hasSuffix("errors 0"), "round \(round)")
    }
    service.forget(victim.target.name)
  }

  @Test("A worker whose policy keeps no base any more while its pages are filled leaves none")
  func policyChanges() throws {
    let service = HibernationService()
    let victim = try Victim(ready: "scribble", "2", "32", parking: .frozen)
    let name = victim.target.name
    for round in 1...4 {
      _ = try sleep(victim, service)
      _ = try wake(victim, service)
      if round % 2 == 0 {
        _ = try service.wait { (h) throws(HibernationError) in h.dropIdleBase(of: name) }
      }
      try service.awaitFill(of: name)
      #expect((access(path + ".base", F_OK) == 0) == (round % 2 == 1), "round \(round)")
      #expect(try victim.ask("verify").hasSuffix("errors 0"))
    }
    service.forget(name)
    try service.awaitFill(of: name)
    #expect(access(path + ".base", F_OK) != 0)
  }

  @Test("What a worker needs first isn't left in a part of the base that is filled while it runs")
  func neededFirst() throws {
    let service = HibernationService()
    let victim = try Victim(ready: "layers", "1024", parking: .frozen)
    _ = try sleep(victim, service)
    try victim.send("change 1 40")
    _ = try wake(victim, service)
    _ = try victim.line()
    let slept = try sleep(victim, service)
    #expect(slept.unchanged > 8 << 20)
    let image = try ImageReader(path: path)
    let identity = victim.target.root
    let name = victim.target.name
    let needed = try service.wait { (h) throws(HibernationError) in
      h.workingSets[name]?[identity]?.pages ?? []
    }
    #expect(!needed.isEmpty)
    let late = image.steps.filter(\.isBackgroundFilled).flatMap(\.ranges).flatMap(\.pages)
    #expect(needed.isDisjoint(with: late))
    #expect(image.steps.contains { $0.isOfBase && $0.isBackgroundFilled })
    _ = try wake(victim, service)
    #expect(try victim.ask("verify") == "same")
    service.forget(name)
  }

  @Test func `A base that was made for full restores isn't used for a lazy one`() throws {
    let service = HibernationService()
    let victim = try Victim(ready: "layers", "1024", parking: .frozen)
    _ = try victim.nap(service, at: path)
    try victim.rise(service, from: path)
    let slept = try sleep(victim, service)
    #expect(slept.unchanged == 0)
    #expect(try wake(victim, service).backgroundFill > 4 << 20)
    #expect(try victim.ask("verify") == "same")
    service.forget(victim.target.name)
  }

  /// glibc 2.41 maps such memory at the first call of getrandom(3). In /proc/PID/maps it looks like
  /// ordinary memory, and kernels since 6.16 permit no userfaultfd for it.
  @Test("Droppable memory that a worker has mapped since its last sleep doesn't end lazy resumes")
  func droppable() throws {
    let service = HibernationService()
    let victim = try Victim(ready: "layers", "1024", parking: .frozen)
    for round in 1...4 {
      _ = try sleep(victim, service)
      #expect(try wake(victim, service).eagerReason == nil, "round \(round)")
      guard round == 2 else { continue }
      if try victim.ask("droppable") != "mapped" { return notTestedHere("Linux 6.11") }
    }
    #expect(try victim.ask("verify") == "same")
    service.forget(victim.target.name)
  }
}
