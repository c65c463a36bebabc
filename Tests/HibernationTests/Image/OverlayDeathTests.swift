import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The daemon is killed (`kill -9`) while an image is an overlay, or becomes a base.
@Suite(.serialized)
struct OverlayDeathTests {
  let service = HibernationService()

  /// A fault point, and the pass of it at which the daemon dies.
  struct Death: CustomTestStringConvertible, Sendable {
    let fault: FaultPoint
    let pass: Int
    let way: OverlayTests.Way
    let parking: Victim.Parking
    var testDescription: String { "\(fault.rawValue):\(pass) \(way) \(parking)" }
  }

  /// The fault points of a second cycle, which has an overlay, and those of the first cycle that
  /// make a base.
  static let all: [Death] = Nightly.oneOfEach(FaultPoint.allCases.map(deaths))

  private static func deaths(_ fault: FaultPoint) -> [Death] {
    OverlayTests.rows.joined().compactMap { way, parking -> Death? in
      let pass: Int
      switch fault {
      case .recoverySeized, .borrowedAgain, .registersBack, .fillMarked, .fillPrepared, .filling,
        .eventRead, .childFilled, .filled, .handingOver, .unregistered, .userfaultOpened,
        .registered, .thawed,
        .trimStopped, .trimRecorded, .trimBorrowed, .trimAdvised, .trimReturned, .trimContinuing,
        .trimRepairing, .trimmed, .trimHandedOver, .trimUnregistered, .devicePassed:
        return nil
      case .frozen, .detached:
        if parking != .frozen { return nil }
        pass = 2
      case .trackerOpened:
        if way != .tracked { return nil }
        pass = 1
      // The first resume makes the base, the second removes its image, the third image is complete.
      case .baseKept, .unlinked, .baseRemoved: pass = 1
      default: pass = 2
      }
      return Death(fault: fault, pass: pass, way: way, parking: parking)
    }
  }

  @Test("A daemon killed at any step of a cycle with overlays loses nothing", arguments: all)
  func everyFaultPoint(death: Death) throws {
    let probe = try start(death)
    // The cycles until the daemon dies: a base, an overlay, and one more complete image.
    try live(probe, change: ["change 1 30", "change 2 30", "grow 800"])
    try recoverAndCheck(probe)
  }

  @Test(
    "A daemon killed while it writes the third image, which is complete again, loses nothing",
    arguments: [FaultPoint.captured, .committed, .evicted, .rested, .writingBack, .baseKept])
  func compaction(fault: FaultPoint) throws {
    let probe = try start(
      Death(fault: fault, pass: fault == .baseKept ? 2 : 3, way: .compared, parking: .traced))
    try live(probe, change: ["change 1 30", "grow 800", "change 3 30"])
    try recoverAndCheck(probe)
  }

  static let secondDeaths: [FaultPoint] = [
    .recoverySeized, .registersBack, .writingBack, .writtenBack, .unlinked, .baseRemoved,
  ]

  @Test("A second daemon killed while it recovers overlays loses nothing", arguments: secondDeaths)
  func secondDeath(fault: FaultPoint) throws {
    for parking in Nightly.one(of: Victim.Parking.available) {
      let probe = try start(
        Death(fault: .evicted, pass: 2, way: Self.defaultWay, parking: parking))
      try live(probe, change: ["change 1 30", "change 2 30", ""])
      try probe.recoverAndDie(at: fault)
      try recoverAndCheck(probe)
    }
  }

  @Test(
    "A daemon killed at random moments while it uses overlays loses nothing",
    arguments: Nightly.one(of: Victim.Parking.available))
  func randomMoments(parking: Victim.Parking) throws {
    for seed in 0..<RecoveryTests.randomRounds {
      var random = TestRandom(seed: seed)
      let probe = try Probe(
        Self.command(), parking: parking,
        overlays: (OverlayTests.Way.available.randomElement(
          using: &random) ?? .compared).rawValue)
      for round in 0..<Int.random(in: 1...3, using: &random) {
        try probe.perform("hibernate")
        try probe.perform("resume")
        _ = try probe.talk.ask("change \(seed * 10 + UInt64(round)) 40")
      }
      if seed % 3 == 2 { try probe.perform("hibernate") }
      try probe.order(seed % 3 == 2 ? "resume" : "hibernate")
      usleep(UInt32.random(in: 0..<30_000, using: &random))
      try probe.daemonDies(by: SIGKILL)
      try recoverAndCheck(probe, "seed \(seed)")
    }
  }

  // MARK: helpers

  private static let defaultWay = OverlayTests.Way.available[0]

  private static func command() throws -> [String] { [try Fixture.compile("layers"), "256"] }

  private func start(_ death: Death) throws -> Probe {
    try Probe(
      Self.command(), parking: death.parking, fault: death.fault, time: death.pass,
      overlays: death.way.rawValue)
  }

  /// Runs cycles with a change after each, until the daemon dies.
  private func live(_ probe: Probe, change: [String]) throws {
    for change in change + [""] {
      for order in ["hibernate", "resume"] {
        try probe.order(order)
        if try probe.reportsOrDies() { return }
      }
      if !change.isEmpty { _ = try probe.talk.ask(change) }
    }
    Issue.record("the daemon has lived through it")
  }

  private func recoverAndCheck(_ probe: Probe, _ comment: Comment? = nil) throws {
    let (target, image) = (probe.target, probe.image)
    try service.recover(target, from: image)
    try #require(try probe.talk.ask("verify") == "same", comment)
    for file in [image, image + ".partial", image + ".base"] {
      #expect(access(file, F_OK) != 0, "\(file) is left")
    }
    #expect(try Eligibility.foreignUserfaults(of: probe.victim.pid).isEmpty, comment)
    let mappings = try MemoryMapping.all(of: probe.victim.pid)
    #expect(
      !mappings.contains {
        $0.flags.contains(.writesWatched)
          || $0.executable && !$0.writable && !$0.hasFile && $0.name.isEmpty
      }, comment)
    // The worker can be hibernated again.
    try service.hibernate(HibernationRequest(target, to: image, overlay: true))
    try service.resume(target, from: RestingImage(path: image))
    try #require(try probe.talk.ask("verify") == "same", comment)
  }
}

extension Probe {
  /// Returns true if the daemon has died, and false if it has carried out its order.
  func reportsOrDies() throws -> Bool {
    let deadline = Deadline(in: .seconds(60))
    // Its victim also holds the other end of the reports, so they don't end with the daemon.
    while try !reports.hasSome {
      let now = Deadline(in: .zero)
      if try pollDescriptor(daemon.pidfd.raw, for: POLLIN, until: now) { return true }
      try #require(!deadline.hasPassed, "it neither reports nor dies")
    }
    let answer = try reports.line()
    try #require(answer.hasPrefix("done"), "\(answer)")
    return false
  }
}
