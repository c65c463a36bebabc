import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The daemon is killed (`kill -9`) while pages are missing. A new daemon fills them, or reports
/// that it can't prove that the result is right.
@Suite(.serialized, .needsUserfaults)
struct PagerDeathTests {
  let service = HibernationService()

  static let points: [FaultPoint] = [
    .fillMarked, .registered, .writingBack, .writtenBack, .fillPrepared, .filling, .eventRead,
    .filled, .unregistered, .thawed, .unlinked,
  ]

  @Test("A daemon killed at any step of a lazy restore loses nothing", arguments: points)
  func everyFaultPoint(fault: FaultPoint) throws {
    let probe = try Probe(Fixture.churn(), parking: .frozen, fault: fault, isLazy: true)
    try probe.perform("hibernate")
    try probe.talk.send("churn 3")
    try probe.die(during: "resume")
    #expect(try recoverAndCheck(probe, "\(fault)"))
  }

  @Test(
    "A daemon killed at any step of a lazy restore from an overlay and its base loses nothing",
    arguments: Nightly.oneOfEach(
      (points + [.baseKept, .handingOver]).map { point in
        ["tracked", "compared"].map { (point, $0) }
      }))
  func everyFaultPointOfOverlay(fault: FaultPoint, way: String) throws {
    if fault == .handingOver {
      // On a busy machine a worker may not be frozen in time, and then isn't handed over.
      if way == "tracked" { try #require(try (0..<12).contains { _ in try diesHandingOver() }) }
      return
    }
    // The first resume is from a complete image, which becomes the base.
    let isOfFirst = fault == .baseKept
    let time = isOfFirst || fault == .unlinked || fault == .eventRead ? 1 : 2
    let probe = try Probe(
      Fixture.churn(), parking: .frozen, fault: fault, time: time, isLazy: true, overlays: way)
    try probe.perform("hibernate")
    if isOfFirst {
      try probe.talk.send("churn 3")
      try probe.order("resume")
    } else {
      try probe.perform("resume")
      try probe.perform("settle")
      try probe.perform("hibernate")
      let image = try ImageReader(path: probe.image)
      #expect(image.steps.contains { $0.isOfBase && $0.isBackgroundFilled })
      try probe.talk.send("churn 3")
      try probe.order("resume")
    }
    try probe.daemonDies()
    #expect(try recoverAndCheck(probe, "\(fault)"))
    #expect(access(probe.image + ".base", F_OK) != 0, "\(fault)")
  }

  /// Returns false if the daemon hasn't handed the worker over, and lives.
  private func diesHandingOver() throws -> Bool {
    // A worker that has forked or moved memory isn't tracked.
    let probe = try Probe(
      [try Fixture.compile("scribble"), "2", "16"], parking: .frozen, fault: .handingOver,
      isLazy: true, overlays: "tracked")
    try probe.perform("hibernate")
    try probe.talk.send("verify")
    try probe.order("resume")
    let isDead = try pollDescriptor(
      probe.daemon.pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(20)))
    if !isDead { return false }
    #expect(try recoverAndCheck(probe, "handing-over"))
    #expect(access(probe.image + ".base", F_OK) != 0)
    return true
  }

  @Test("A daemon killed while it prepares for a lazy restore leaves no obstacle to the next one")
  func whilePreparing() throws {
    let probe = try Probe(Fixture.churn(), parking: .frozen, fault: .userfaultOpened, isLazy: true)
    try probe.die(during: "hibernate")
    try probe.talk.send("churn 3")
    #expect(try recoverAndCheck(probe, "userfault-opened"))
  }

  @Test(
    "The torture program survives a daemon killed at any step of a lazy restore",
    .enabled(if: Nightly.runs, "only in make test-all"),
    arguments: points.filter { $0 != .eventRead })
  func torture(fault: FaultPoint) throws {
    let command = [try Fixture.compile("torture"), "4", "14", "3"]
    let probe = try Probe(command, parking: .frozen, fault: fault, isLazy: true)
    let sum = try probe.talk.ask("sum")
    try probe.perform("hibernate")
    try probe.talk.send("sum")
    try probe.die(during: "resume")
    try service.recover(probe.target, from: probe.image)
    #expect(try probe.talk.line() == sum)
    #expect(try probe.talk.ask("wake").hasPrefix("woke"))
    // Recovery without a frozen group can't correct calls that it never saw; no call may need that.
    #expect(try probe.talk.ask("errors") == "errors 0 eintr 0")
  }

  @Test func `A child forked at the daemon's death is restored when files can be opened again`()
    throws
  {
    let probe = try Probe(Fixture.churn(), parking: .frozen, fault: .eventRead, isLazy: true)
    try probe.perform("hibernate")
    // Each thread forks first.
    try probe.talk.send("churn 2")
    try probe.order("resume")
    try probe.daemonDies()
    let child = try #require(children(of: probe.victim.pid).first)
    let (target, image) = (probe.target, probe.image)
    for file in ["syscall", "mem", "pagemap", "smaps"] {
      let fault = InjectedFault(ENOMEM, of: "/proc/\(child)/\(file)")
      let error = #expect(throws: HibernationError.self) {
        _ = try service.wait { (h) throws(HibernationError) in
          try fault.during {
            Result { () throws(HibernationError) in try h.recover(target, from: image) }
          }.get()
        }
      }
      #expect(error?.aftermath == .intact, "\(file): \(String(describing: error))")
    }
    #expect(try recoverAndCheck(probe, "files can be opened again"))
  }

  /// Tests a past defect that silently changed a worker's memory: pages beside prefetched ones, in
  /// an area for huge pages, had been filled with zeros, and the second pager assumed that the
  /// first one had filled them.
  @Test("A daemon killed while it fills pages beside those of the working set loses nothing")
  func hotAmongCold() throws {
    let command = [try Fixture.compile("torture"), "8", "6", "3"]
    let probe = try Probe(command, parking: .frozen, fault: .fillPrepared, time: 2, isLazy: true)
    // Every seventh page is learned as part of the working set.
    try probe.perform("hibernate")
    try probe.talk.send("touch 5")
    try probe.perform("resume")
    #expect(try probe.talk.line().hasPrefix("touched"))
    try probe.perform("settle")
    // A remaining page table would prevent a huge page.
    #expect(try probe.talk.ask("collapse").hasPrefix("collapse"))
    let sum = try probe.talk.ask("sum")
    try probe.perform("hibernate")
    try probe.die(during: "resume")
    try service.recover(probe.target, from: probe.image)
    #expect(try probe.talk.ask("sum") == sum)
  }

  @Test func `A daemon killed at random moments of a lazy restore loses nothing`() throws {
    var refused = 0
    for seed in 0..<Self.rounds {
      var random = TestRandom(seed: seed)
      let probe = try Probe(Fixture.churn(), parking: .frozen, isLazy: true)
      try probe.perform("hibernate")
      if seed % 2 == 1 {
        // One resume has learned the working set, which is the ordinary case.
        try probe.perform("resume")
        try probe.perform("settle")
        try probe.perform("hibernate")
      }
      try probe.talk.send("churn \(seed)")
      try probe.order("resume")
      usleep(UInt32.random(in: 0..<80_000, using: &random))
      try probe.daemonDies(by: SIGKILL)
      if try !recoverAndCheck(probe, "seed \(seed)") { refused += 1 }
    }
    // Only a kill during a fork, with a signal just before it, can cause that.
    #expect(refused * 5 <= Self.rounds)
  }

  @Test(
    "A daemon killed during a lazy restore with a known working set loses nothing",
    arguments: [false, true])
  func randomMomentsWhenKnown(hasStandby: Bool) throws {
    for seed in 0..<Self.rounds {
      var random = TestRandom(seed: seed)
      let command = [try Fixture.compile("torture"), "6", "10", "\(seed)"]
      let probe = try Probe(command, parking: .frozen, isLazy: true, hasStandby: hasStandby)
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        try probe.perform("hibernate")
        try probe.talk.send("touch \(seed)")
        try probe.perform("resume")
        _ = try probe.talk.line()
        try probe.perform("settle")
        if Bool.random(using: &random) { _ = try probe.talk.ask("collapse") }
      }
      let sum = try probe.talk.ask("sum")
      try probe.perform("hibernate")
      if Bool.random(using: &random) { try probe.talk.send("wake") }
      try probe.talk.send("sum")
      try probe.order("resume")
      usleep(UInt32.random(in: 0..<60_000, using: &random))
      try probe.daemonDies(by: SIGKILL)
      try service.recover(probe.target, from: probe.image)
      var answer = try probe.talk.line()
      if answer.hasPrefix("woke") { answer = try probe.talk.line() }
      try #require(answer == sum, "seed \(seed)")
      #expect(try probe.talk.ask("sum") == sum, "seed \(seed), afterwards")
      let errors = try probe.talk.ask("errors")
      #expect(errors.hasPrefix("errors 0"), "seed \(seed): \(errors)")
    }
  }

  @Test(arguments: [FaultPoint.fillPrepared, .filling, .filled, .unregistered])
  func `When the daemon dies, the standby pager continues at once`(fault: FaultPoint) throws {
    let probe = try Probe(
      Fixture.churn(), parking: .frozen, fault: fault, isLazy: true, hasStandby: true)
    try probe.perform("hibernate")
    try probe.talk.send("verify")
    try probe.die(during: "resume")
    // At that point the worker may still be frozen: the next daemon thaws it, not the standby
    // pager.
    if fault != .fillPrepared {
      #expect(try probe.talk.line().hasSuffix("errors 0"))
      let deadline = Deadline(in: .seconds(60))
      while access(probe.image, F_OK) == 0, !deadline.hasPassed { usleep(1000) }
      #expect(access(probe.image, F_OK) != 0)
      try probe.talk.send("verify")
    }
    #expect(try recoverAndCheck(probe, "\(fault)"))
  }

  @Test func `A standby pager and a new daemon don't disturb each other`() throws {
    for seed in 0..<Self.rounds {
      var random = TestRandom(seed: seed)
      let probe = try Probe(Fixture.churn(), parking: .frozen, isLazy: true, hasStandby: true)
      try probe.perform("hibernate")
      try probe.talk.send("churn \(seed)")
      try probe.order("resume")
      usleep(UInt32.random(in: 0..<60_000, using: &random))
      try probe.daemonDies(by: SIGKILL)
      _ = try recoverAndCheck(probe, "seed \(seed)")
    }
  }

  /// The number of rounds. DORMOUSE_KILL_ROUNDS=200 runs more of them.
  static let rounds = UInt64(Nightly.rounds(5, of: 10, variable: "DORMOUSE_KILL_ROUNDS"))

  /// Returns false if the recovery was refused for a permitted reason.
  private func recoverAndCheck(_ probe: Probe, _ comment: Comment) throws -> Bool {
    let (target, image) = (probe.target, probe.image)
    do {
      try service.recover(target, from: image)
    } catch {
      try #require(error.aftermath == .unverifiable, "\(comment): \(error)")
      try #require(error.reason.contains("forked"), "\(comment): \(error)")
      try probe.cgroup?.kill()
      print("\(comment): \(error)")
      return false
    }
    let answer = try probe.talk.line()
    try #require(answer.hasSuffix("errors 0"), "\(comment): \(answer)")
    try #require(try probe.talk.ask("verify").hasSuffix("errors 0"), comment)
    #expect(access(image, F_OK) != 0, comment)
    #expect(try !hasUserfaults(probe.victim.pid))
    // The worker can sleep again, with Dormouse's descriptors in it.
    let name = target.name
    try probe.cgroup?.freeze(until: Deadline(in: .seconds(60)))
    _ = try service.wait { (h) throws(HibernationError) in
      let slept = try h.hibernate(HibernationRequest(target, to: image, restore: .lazy))
      let woken = try h.resume(target, from: RestingImage(path: image, .lazy(learns: true)))
      try h.awaitFill(of: name)
      return slept.lazyRefusal == nil && woken.eagerReason == nil
    }
    try #require(try probe.talk.ask("verify").hasSuffix("errors 0"), comment)
    _ = try service.wait { (h) throws(HibernationError) in h.forget(name) }
    return true
  }
}
