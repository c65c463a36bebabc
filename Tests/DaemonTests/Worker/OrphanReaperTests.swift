import Testing

@testable import Daemon

@Suite("Orphans of workers") struct OrphanReaperTests {
  private let timers = FakeTimers()
  private let children = FakeProcesses()

  private func reaper(owned: Set<Int32> = []) -> OrphanReaper {
    OrphanReaper(timers: timers, processes: children) { owned }
  }

  @Test func `Orphans are reaped when they have ended, and children with an owner aren't`() {
    children.set { ($0.children, $0.running) = ([10, 11, 12, 13], [13]) }
    let reaper = reaper(owned: [11])
    reaper.reapOrphans()
    #expect(children.reaped == [10, 12] && timers.pending.isEmpty)
  }

  @Test
  func `A child that may still be in the middle of a fork isn't reaped until a moment later`() {
    children.set { ($0.children, $0.anyChildIsUnclaimed) = ([10], true) }
    let reaper = reaper()
    for _ in 0..<3 { reaper.reapOrphans() }
    #expect(children.reaped.isEmpty)
    #expect(timers.pending == [OrphanReaper.interval], "there is one timer")
    children.set { $0.anyChildIsUnclaimed = false }
    timers.advance(by: OrphanReaper.interval)
    #expect(children.reaped == [10] && timers.pending.isEmpty)
  }
}
