import Lifecycle
import Policy
import TestSupport
import Testing

@testable import Journal

@Suite("What another policy would have done") struct WhatIfTests {
  private func compare(
    _ recording: Recording, with policy: LifecyclePolicy
  ) throws -> WhatIf {
    var model = CostModel()
    var first = JournalPlayer()
    first.play(recording.journal) { step, engine in model.visit(step, engine) }
    var other = try WhatIf(policy: policy, model: model)
    var second = JournalPlayer()
    second.play(recording.journal) { step, engine in other.visit(step, engine) }
    other.finish()
    return other
  }

  @Test(arguments: 1...Nightly.rounds(4, of: 10))
  func `A comparison ends for every history and policy, with times that add up`(seed: Int) throws {
    let recording = try Recording(seed: UInt64(seed))
    var never = LifecyclePolicy()
    never.background.suspendAfter = nil
    never.ladder = Ladder(warning: [], urgent: [], critical: [])
    for policy in [LifecyclePolicy(), never] {
      let other = try compare(recording, with: policy)
      for (worker, tally) in other.recorded.tallies {
        let there = other.other.tallies[worker]?.nanoseconds.values.reduce(0, +) ?? 0
        #expect(tally.nanoseconds.values.reduce(0, +) == there, "\(worker)")
      }
      let all = other.other.tallies.values.reduce(WorkerTally(), +)
      if policy == never { #expect(all.memoryTerminations == 0) }
    }
  }

  @Test("Terminations that are forbidden need no relaunches, and the recorded ones are counted")
  func relaunches() throws {
    var (recorded, others) = (0, 0)
    // Few random histories start a worker again after memory was short.
    for seed in 1...60 where seed <= 4 || recorded == 0 {
      var policy = LifecyclePolicy()
      policy.ladder = Ladder(warning: [], urgent: [], critical: [])
      policy.watchdog.onTimeout = .report
      let other = try compare(try Recording(seed: UInt64(seed)), with: policy)
      recorded += other.recordedRelaunches
      others += other.other.tallies.values.reduce(0) { $0 + $1.memoryTerminations }
      #expect((other.recordedRelaunches == 0) == (other.recordedRelaunchTime == .zero))
      let times = other.recorded.tallies.values.map { $0.nanoseconds.values.reduce(0, +) }
      #expect(other.recorded.span == .nanoseconds(times.max() ?? 0))
    }
    #expect(recorded > 0 && others == 0)
  }

  @Test("A policy that forbids sleep would have suspended workers less often than the recorded one")
  func neverSleeps() throws {
    var (suspensions, others) = (0, 0)
    for seed in 1...10 {
      let recording = try Recording(seed: UInt64(seed))
      var policy = LifecyclePolicy()
      policy.background.suspendAfter = nil
      policy.hibernate.enabled = false
      let other = try compare(recording, with: policy)
      suspensions += other.recorded.tallies.values.reduce(0) { $0 + $1.suspensions }
      others += other.other.tallies.values.reduce(0) { $0 + $1.suspensions }
    }
    #expect(others < suspensions, "\(others) suspensions instead of \(suspensions)")
  }
}
