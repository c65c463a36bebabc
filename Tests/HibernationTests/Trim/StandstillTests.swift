import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Trims by userfaultfd that are given up, because the worker has stood still for too long.
@Suite(.serialized, .needsUserfaults)
struct StandstillTests {
  let service = HibernationService()

  private func trim(
    _ victim: Victim, to path: String, limit: Duration?, keepsBase: Bool = false
  ) throws -> TrimSummary {
    var image = HibernationRequest(victim.target, to: path, overlay: keepsBase)
    if limit != nil {
      let pid = victim.process.pid
      image.obstacle = { waits in
        // A disk that is slow while the worker is stopped. It isn't asked for its state if it has
        // ended.
        if waits, (try? ProcessStat.read(pid).state) == .traced { usleep(600_000) }
        return nil
      }
    }
    let request = TrimRequest(
      image, record: path + ".trim", mechanism: .userfaultfd, maxStandstill: limit)
    return try service.trim(request)
  }

  private func checkGivenUp(_ victim: Victim, to path: String, keepsBase: Bool) throws {
    let error = #expect(throws: HibernationError.self) {
      try trim(victim, to: path, limit: .milliseconds(500), keepsBase: keepsBase)
    }
    #expect(error?.reason.hasPrefix("the machine is busy") == true, "\(String(describing: error))")
    #expect(error?.aftermath == .intact)
    // Its next pager thaws it.
    #expect(try eventually { try !victim.target.isFrozen() })
    #expect(!fileExists(path + ".partial"))
  }

  @Test(
    "A trim is given up if the worker stands still for too long, and the worker runs on unchanged",
    arguments: [false, true])
  func givenUp(keepsBase: Bool) throws {
    let (victim, path) = try Victim.ready(Fixture.churn("drops"))
    for round in 1...3 {
      try checkGivenUp(victim, to: path, keepsBase: keepsBase)
      #expect(!fileExists(path))
      try #require(try victim.ask("churn \(round)").hasSuffix("errors 0"))
    }
    let missing = try #require(
      try trim(victim, to: path, limit: nil, keepsBase: keepsBase).missing)
    // The worker keeps its trim, and its earlier image.
    let before = try ImageReader(path: path).id
    for _ in 0..<3 {
      try checkGivenUp(victim, to: path, keepsBase: keepsBase)
      #expect(try ImageReader(path: path).id == before && missing.bytes > 0)
    }
    try #require(try victim.ask("churn 5").hasSuffix("errors 0"))
    _ = try trim(victim, to: path, limit: nil, keepsBase: keepsBase)
    try #require(try victim.isWhole)
    try service.fill(victim.target)
    try #require(try victim.isWhole)
  }
}
