import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Workers that are trimmed by userfaultfd, and then suspended and hibernated: what is missing
/// stays on disk.
@Suite(.serialized, .needsUserfaults)
struct SuspendedTrimTests {
  let service = HibernationService()

  /// Trims a worker, and returns how many bytes are missing.
  @discardableResult
  private func trim(
    _ target: HibernationTarget, to path: String, keepsBase: Bool = false
  ) throws -> UInt64 {
    try #require(try service.trim(target, to: path, keepsBase: keepsBase).missing).bytes
  }

  /// Suspends a trimmed worker, and returns what is missing.
  @discardableResult
  private func suspend(_ target: HibernationTarget) throws -> MissingBytes {
    let missing = try #require(try service.freezeTrimmed(target.name))
    #expect(try target.isFrozen())
    return missing
  }

  private func thaw(_ target: HibernationTarget, image path: String) throws {
    try service.serveTrimmed(target, image: path)
    try target.wake(target.restartInterruptedSyscalls(), isStopped: false)
  }

  @discardableResult
  private func hibernate(
    _ target: HibernationTarget, to path: String, isLazy: Bool = false, obstacle: String? = nil,
    change: (inout HibernationRequest) -> Void = { _ in }
  ) throws -> HibernationSummary {
    var request = HibernationRequest(target, to: path, restore: isLazy ? .lazy : .eager)
    request.obstacle = { waits in waits ? obstacle : nil }
    change(&request)
    return try service.hibernate(request)
  }

  @discardableResult
  private func resume(
    _ target: HibernationTarget, from image: RestingImage, keepsBase: Bool = false
  ) throws -> ResumeSummary {
    let summary = try service.resume(target, from: image, keepsBase: keepsBase)
    try service.awaitFill(of: target.name)
    return summary
  }

  // MARK: suspension

  @Test("A suspended worker keeps its trim, and runs on with it")
  func resumed() throws {
    let (victim, path) = try Victim.ready(Fixture.churn("drops"))
    let target = victim.target
    let missing = try trim(target, to: path)
    for round in 1...4 {
      let suspended = try suspend(target)
      // It uses most of its memory from the first resume on.
      if round == 1 {
        #expect(suspended.isTrimmed && suspended.bytes > missing / 2)
        #expect(try victim.anonymousMemory() < missing / 2)
      }
      try victim.send("churn \(round)")
      usleep(20_000)  // If it isn't frozen, it answers in this time.
      #expect(try target.isFrozen() && !victim.hasSaid)
      try thaw(target, image: path)
      try #require(try victim.line().hasSuffix("errors 0"), "round \(round)")
      if round == 2 { try trim(target, to: path) }
    }
    try #require(try victim.isWhole)
    try service.awaitFill(of: target.name)
    #expect(isGone(path))
    try #require(try victim.isWhole)
  }

  @Test("All memory of a suspended trimmed worker can come back while it stays suspended")
  func filled() throws {
    let (victim, path) = try Victim.ready(Fixture.churn("drops"))
    let target = victim.target
    let missing = try trim(target, to: path)
    let suspended = try suspend(target)
    try service.awaitFill(of: target.name)
    #expect(try target.isFrozen())
    #expect(suspended.bytes == 0 && isGone(path))
    #expect(try victim.anonymousMemory() > missing)
    #expect(try !hasUserfaults(victim.process.pid))
    try thaw(target, image: path)
    try #require(try victim.isWhole)
  }

  @Test("A suspended trimmed worker that is killed leaves nothing that its next run could meet")
  func killed() throws {
    let (victim, path) = try Victim.ready(Fixture.churn("drops"))
    let target = victim.target
    try trim(target, to: path)
    try suspend(target)
    try target.cgroup?.kill()
    reap(victim.process.pid)
    let error = #expect(throws: HibernationError.self) { try hibernate(target, to: path) }
    #expect(error?.aftermath == .vanished)
    #expect(isGone(path))
    service.forget(target.name)
  }

  // MARK: hibernation

  @Test(
    "The hibernation of a trimmed worker writes only what is in memory",
    arguments: [false, true], [false, true])
  func hibernated(isLazy: Bool, keepsBase: Bool) throws {
    let (victim, path) = try Victim.ready(Fixture.churn("drops"))
    let target = victim.target
    for round in 1...3 {
      let missing = try trim(target, to: path, keepsBase: keepsBase)
      if round == 2 { try #require(try victim.ask("churn 2").hasSuffix("errors 0")) }
      try suspend(target)
      let asleep = try hibernate(target, to: path, isLazy: isLazy) { $0.overlay = keepsBase }
      #expect(try target.isFrozen())
      #expect(round == 2 || asleep.moved < missing / 2, "\(asleep)")
      #expect(try victim.anonymousMemory() < 1 << 20)
      let image = try ImageReader(path: path)
      #expect(image.dataLength > missing / 2)
      try image.verify()
      let summary = try resume(target, from: asleep.image, keepsBase: keepsBase)
      #expect((summary.backgroundFill > 0) == isLazy, "\(summary)")
      try #require(try victim.isWhole, "round \(round)")
      #expect(!fileExists(path) && fileExists(path + ".base") == keepsBase)
    }
  }

  @Test("What stays in memory of a trimmed worker stays when it is hibernated, up to a quarter")
  func keepsWorkingSet() throws {
    let (victim, path) = try Victim.ready(Fixture.churn("drops"))
    let target = victim.target
    for _ in 0..<3 {
      let missing = try trim(target, to: path)
      try #require(try victim.ask("churn 1").hasSuffix("errors 0"))
      try suspend(target)
      let asleep = try hibernate(target, to: path, isLazy: true) { $0.keepsWorkingSet = true }
      let pid = victim.process.pid
      #expect(anonymousMemory(of: pid) < missing / 2)
      try resume(target, from: asleep.image)
      try #require(try victim.isWhole)
    }
  }

  @Test(
    "A hibernation of a trimmed worker that fails before its image is complete leaves it as it was")
  func failure() throws {
    let (victim, path) = try Victim.ready(Fixture.churn("drops"))
    let target = victim.target
    try trim(target, to: path)
    let before = try ImageReader(path: path).id
    let missing = try suspend(target)
    for _ in 0..<3 {
      let error = #expect(throws: HibernationError.self) {
        try hibernate(target, to: path, obstacle: "no room")
      }
      #expect(error?.reason == "no room" && error?.aftermath == .intact)
      #expect(try target.isFrozen() && ImageReader(path: path).id == before && missing.bytes > 0)
      #expect(!fileExists(path + ".partial"))
    }
    try thaw(target, image: path)
    try #require(try victim.ask("churn 1").hasSuffix("errors 0"))
    try suspend(target)
    try resume(target, from: try hibernate(target, to: path).image)
    try #require(try victim.isWhole)
    #expect(isGone(path))
  }

  @Test("A trimmed worker whose image has to be encrypted gets all of its memory first")
  func sealed() throws {
    let (victim, path) = try Victim.ready(Fixture.churn("drops"))
    let target = victim.target
    let missing = try trim(target, to: path)
    try suspend(target)
    let asleep = try hibernate(target, to: path) { $0.isSealed = true }
    #expect(asleep.moved > missing && !fileExists(path + ".base"))
    #expect(try target.isFrozen())
    try resume(target, from: asleep.image)
    try #require(try victim.isWhole)
  }

  // MARK: the daemon's death

  private func start(
    _ fault: FaultPoint?, time: Int = 1, hasStandby: Bool, isLazy: Bool = false,
    churns: Bool = true
  ) throws -> Probe {
    let probe = try Probe(
      Fixture.churn("drops"), parking: .frozen,
      fault: fault, time: time, isLazy: isLazy, hasStandby: hasStandby)
    try probe.perform("trim to image")
    if churns { try #require(try probe.talk.ask("churn 2").hasSuffix("errors 0")) }
    return probe
  }

  /// Checks that the worker can be trimmed, suspended and hibernated as before.
  private func check(_ probe: Probe) throws {
    let (target, image) = (probe.target, probe.image)
    try trim(target, to: image)
    try suspend(target)
    try resume(target, from: try hibernate(target, to: image).image)
    try #require(try probe.talk.ask("churn 3").hasSuffix("errors 0"))
    #expect(isGone(image))
    service.forget(target.name)
  }

  @Test("The next daemon finds a trimmed worker suspended", arguments: [false, true])
  func leftSuspended(hasStandby: Bool) throws {
    for next in ["resume", "hibernate", "encrypt"] {
      let probe = try start(nil, hasStandby: hasStandby, churns: false)
      let (target, image) = (probe.target, probe.image)
      #expect(Hibernator.missingOfSuspended(target, image: image) == nil)
      try probe.perform("suspend")
      try probe.daemonDies(by: SIGKILL)
      usleep(300_000)  // In this time a standby pager that still knows it would wake it.
      let missing = try #require(Hibernator.missingOfSuspended(target, image: image))
      #expect(missing.isTrimmed && missing.bytes > 1 << 20)
      if next != "resume" {
        let isSealed = next == "encrypt"
        let asleep = try hibernate(target, to: image) { $0.isSealed = isSealed }
        #expect(isSealed ? asleep.moved > missing.bytes : asleep.moved < missing.bytes)
        #expect(try target.isFrozen())
        try resume(target, from: asleep.image)
      } else {
        try service.adoptTrimmed(probe, keepsTrims: true)
        #expect(try anonymousBytes(of: [probe.victim.pid]) < missing.bytes)
      }
      try #require(try probe.talk.ask("verify").hasSuffix("errors 0"))
      try check(probe)
    }
  }

  @Test("The next daemon counts what a suspended trimmed worker has in RAM as present")
  func counted() throws {
    let probe = try start(nil, hasStandby: false)
    try probe.perform("suspend")
    try probe.daemonDies(by: SIGKILL)
    let image = try ImageReader(path: probe.image)
    let missing = try #require(Hibernator.missingOfSuspended(probe.target, image: probe.image))
    #expect(missing.bytes < image.backgroundFillLength)
    #expect(missing.directory == ImageDirectory(of: probe.image))
    try service.adoptTrimmed(probe, keepsTrims: true)
    try #require(try probe.talk.ask("verify").hasSuffix("errors 0"))
    try check(probe)
  }

  /// The points that a hibernation passes, where the first trim has passed them once.
  static let points: [(FaultPoint, time: Int)] = [
    (.trimHandedOver, 1), (.stopped, 2), (.seized, 2), (.scanned, 2), (.captured, 2),
    (.committed, 2), (.trimUnregistered, 1), (.evicted, 2), (.restored, 2), (.frozen, 2),
    (.detached, 2), (.rested, 2),
  ]

  @Test(
    "A daemon killed at any step of the hibernation of a trimmed worker loses nothing",
    arguments: points, Nightly.one(of: [false, true]))
  func everyStep(point: (FaultPoint, time: Int), hasStandby: Bool) throws {
    let probe = try start(
      point.0, time: point.time, hasStandby: hasStandby, isLazy: !hasStandby)
    try probe.die(during: "hibernate")
    try probe.talk.send("verify")
    let target = probe.target
    if point.0 != .trimHandedOver {
      // The standby pager, if there is one, doesn't know it any more.
      #expect(try !probe.talk.hasSome)
    }
    try service.adoptTrimmed(probe, keepsTrims: !hasStandby)
    try #require(try probe.talk.line().hasSuffix("errors 0"), "\(point.0)")
    #expect(try target.isFrozen() == false)
    try check(probe)
  }
}
