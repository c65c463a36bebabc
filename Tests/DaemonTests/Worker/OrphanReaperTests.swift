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
