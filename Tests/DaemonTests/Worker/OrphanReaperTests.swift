import Lifecycle
import Policy
import Testing

@testable import Daemon

private final class Children: ChildProcesses {
  var anyIsUnclaimed = false
  var all: [Int32] = []
  var running: Set<Int32> = []
  private(set) var reaped: [Int32] = []

  func mayBeReaped(_ pid: Int32) -> Bool { !running.contains(pid) }
  func reap(_ pid: Int32) { reaped.append(pid) }
}

@Suite("Orphans of workers") struct OrphanReaperTests {
  private let timers = FakeTimers()
  private let children = Children()

  private func reaper(owned: Set<Int32> = []) -> OrphanReaper {
    OrphanReaper(timers: timers, children: children) { owned }
  }

  @Test("Orphans are reaped when they have ended, and children with an owner aren't")
  func reaped() {
    children.all = [10, 11, 12, 13]
    children.running = [13]
    let reaper = reaper(owned: [11])
    reaper.reapOrphans()
    #expect(children.reaped == [10, 12] && timers.pending.isEmpty)
  }

  @Test(
    "A child that may still be in the middle of a fork isn't reaped until a moment later")
  func unclaimed() {
    children.all = [10]
    children.anyIsUnclaimed = true
    let reaper = reaper()
    for _ in 0..<3 { reaper.reapOrphans() }
    #expect(children.reaped.isEmpty)
    #expect(timers.pending == [OrphanReaper.interval], "there is one timer")
    children.anyIsUnclaimed = false
    timers.advance(by: OrphanReaper.interval)
    #expect(children.reaped == [10] && timers.pending.isEmpty)
  }
}

@Suite("Ended workers of `run`") struct EndedRunsTests {
  private final class Host: EndedRunsHost {
    var running: Set<WorkerID> = []
    private(set) var forgotten: [WorkerID] = []
    func mayBeForgotten(_ id: WorkerID) -> Bool { !running.contains(id) }
    func forget(_ id: WorkerID) { forgotten.append(id) }
  }

  private let host = Host()

  private static func id(_ number: Int) -> WorkerID { WorkerID("run\(number)") }

  @Test("Of more than a hundred ended workers of `run` the oldest are removed")
  func oldest() {
    let runs = EndedRuns(host)
    for number in 0..<EndedRuns.limit { runs.forgetOldRuns(after: Self.id(number)) }
    #expect(host.forgotten.isEmpty)
    // Again: it is the latest now.
    runs.forgetOldRuns(after: Self.id(0))
    runs.forgetOldRuns(after: Self.id(100))
    #expect(host.forgotten == [Self.id(1)])
  }

  @Test(
    "Ended workers of `run` that run again aren't removed, and are counted again at their next end")
  func running() {
    let runs = EndedRuns(host)
    host.running = [Self.id(0)]
    for number in 0...EndedRuns.limit { runs.forgetOldRuns(after: Self.id(number)) }
    #expect(host.forgotten.isEmpty)
    host.running = []
    runs.forgetOldRuns(after: Self.id(0))
    #expect(host.forgotten == [Self.id(1)])
  }
}
