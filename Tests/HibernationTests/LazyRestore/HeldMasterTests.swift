import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// A daemon may die while it keeps the masters of a prefork server stopped.
@Suite(.serialized, .needsUserfaults)
struct HeldMasterTests {
  private let service = HibernationService()

  @Test(
    "The master of a prefork server that a daemon held stopped when it died continues",
    arguments: [FaultPoint.filling, .unlinked], [false, true])
  func heldMaster(fault: FaultPoint, byStandby: Bool) throws {
    // Without an image a standby pager has nothing to do.
    if byStandby, fault == .unlinked { return }
    let probe = try Probe(Fixture.churn(), parking: .frozen, fault: fault, isLazy: true)
    try probe.perform("hibernate")
    try probe.talk.send("verify")
    try probe.die(during: "resume")
    let root = probe.victim.pid
    kill(root, SIGSTOP)
    let (target, image) = (probe.target, probe.image)
    if byStandby {
      let line = try #require(StandbyPager.line(target, image: image))
      let theirs: Descriptor
      do {
        let pair = try Descriptor.socketPair(.packets)
        _ = pair.0.send(Array(line.utf8), waits: false)
        theirs = pair.1
      }
      let lines = Atomic(0)
      StandbyPager.run(input: theirs, lock: nil) { _ in lines.add(1, ordering: .relaxed) }
      #expect(lines.load(ordering: .relaxed) == 1)
    } else {
      try service.recover(target, from: image)
    }
    #expect(try probe.talk.line().hasSuffix("errors 0"))
    #expect(try ProcessStat.read(root).state != .stopped)
  }

  /// In a past defect the next daemon hibernated the worker, and a late SIGCONT let it run on.
  @Test func `A standby pager continues a held master before it removes the image`() throws {
    let probe = try Probe(Fixture.churn(), parking: .frozen, fault: .filling, isLazy: true)
    try probe.perform("hibernate")
    try probe.talk.send("verify")
    try probe.die(during: "resume")
    let root = probe.victim.pid
    kill(root, SIGSTOP)
    let line = try #require(StandbyPager.line(probe.target, image: probe.image))
    let (ours, theirs) = try Descriptor.socketPair(.packets)
    let pager = try spawn(
      SpawnRequest(
        path: Probe.executable, arguments: ["HibernateProbe", "pager"],
        environment: ["DORMOUSE_FAULT": FaultPoint.unlinked.rawValue], directory: "/",
        input: theirs.raw, output: 1, error: 2), within: .seconds(60))
    #expect(ours.send(Array(line.utf8), waits: false) == line.utf8.count)
    _ = shutdown(ours.raw, Int32(SHUT_WR))
    var status: Int32 = 0
    #expect(waitpid(pager.pid, &status, 0) == pager.pid && status & 0x7F == SIGKILL)
    #expect(access(probe.image, F_OK) != 0)
    #expect(try ProcessStat.read(root).state != .stopped)
    #expect(try probe.talk.line().hasSuffix("errors 0"))
  }
}
