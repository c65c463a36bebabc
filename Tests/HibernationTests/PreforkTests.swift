import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

@Suite(
  "Prefork servers", .serialized,
  .enabled(if: Program.find("python3") != nil, "python3 is not installed"))
struct PreforkTests {
  private func isStopped(_ pid: Int32) throws -> Bool {
    try ProcessStat.read(pid).state == .stopped
  }

  /// Starts and suspends a worker, and finds its masters.
  private func asleep(_ parking: Victim.Parking, _ arguments: String...) throws -> (
    Victim, HibernationTarget, ProcessTree
  ) {
    let command = ["python3", Fixture.path("prefork.py")] + arguments
    let victim = try Victim(ready: command, parking: parking)
    // The master waits at its pipe.
    #expect(try eventually { try ProcessStat.read(victim.process.pid).state == .sleeping })
    try victim.suspend()
    let target = victim.target
    let tree = try target.discover()
    try target.masters.find(in: tree)
    return (victim, target, tree)
  }

  @Test(
    "The children continue first, and the master when it is released",
    arguments: Nightly.one(of: Victim.Parking.available))
  func mastersLast(parking: Victim.Parking) throws {
    let (victim, target, tree) = try asleep(parking)
    let root = victim.process.pid
    #expect(tree.processes.count == 5)
    try target.wake(tree, isStopped: parking == .traced)
    #expect(target.masters.areStopped)
    #expect(try eventually { try isStopped(root) })
    for child in tree.pids where child != root {
      #expect(try eventually { try !isStopped(child) }, "\(child)")
    }
    #expect(try isStopped(root))
    target.masters.release()
    #expect(try eventually { try !isStopped(root) })
  }

  @Test("A worker that is woken to be ended wakes as a whole", arguments: Victim.Parking.available)
  func toEnd(parking: Victim.Parking) throws {
    let (victim, target, tree) = try asleep(parking)
    try target.wake(tree, isStopped: parking == .traced)
    // The worker is ordered to end meanwhile.
    try target.wake(mastersLast: false)
    #expect(!target.masters.areStopped)
    #expect(try eventually { try !isStopped(victim.process.pid) })
  }

  @Test func `A master that serves requests itself wakes with its children`() throws {
    let (victim, target, tree) = try asleep(.traced, "serving")
    try target.wake(tree)
    #expect(!target.masters.areStopped)
    #expect(try eventually { try !isStopped(victim.process.pid) })
  }

  @Test(
    "The children of a hibernated server continue first as well",
    arguments: Nightly.one(of: Victim.Parking.available))
  func hibernated(parking: Victim.Parking) throws {
    let service = HibernationService()
    let (victim, target, _) = try asleep(parking)
    let root = victim.process.pid
    let path = try victim.sleep(service)
    try victim.wake(service, from: path, masters: target.masters)
    #expect(try eventually { try isStopped(root) })
    target.masters.release()
    #expect(try eventually { try !isStopped(root) })
  }
}
