import Testing

@testable import Hibernation

/// The mode of a worker's next resume, chosen from the results of earlier resumes.
struct ResumeHistoryTests {
  private static func lazyResume(
    beforeRunning: Int64 = 3_000_000, waited: Int64 = 500_000, wanted: UInt64 = 2 << 20,
    learning: Bool = false, halt: Halt? = nil
  ) -> ResumeHistory.LazyResume {
    ResumeHistory.LazyResume(
      beforeRunning: beforeRunning, waited: waited, wanted: wanted, total: 16 << 20,
      wasLearning: learning, halt: halt)
  }

  private static let halt = Halt(began: 0, length: 20_000_000)

  /// A history with an eager resume and a learned working set.
  private static func known(_ last: ResumeHistory.LazyResume? = nil) -> ResumeHistory {
    var history = ResumeHistory()
    history.recordEager(18_000_000, bytes: 16 << 20)
    history.record(lazyResume(beforeRunning: 1_000_000, waited: 40_000_000, learning: true))
    if let last { history.record(last) }
    return history
  }

  @Test("The first resume is eager, the second one learns, and then the faster mode is used")
  func course() {
    var history = ResumeHistory()
    #expect(!history.plan(.auto).isLazy)
    history.recordEager(18_000_000, bytes: 16 << 20)
    #expect(history.plan(.auto).isLazy)
    history.record(Self.lazyResume(beforeRunning: 1_000_000, waited: 40_000_000, learning: true))
    #expect(history.plan(.auto).isLazy)
    history.record(Self.lazyResume())
    #expect(history.plan(.auto) == RestorePlan(lazy: "3.5 ms lazily, 18.0 ms in full"))
  }

  @Test("The policy's choice of a resume mode overrides the history")
  func policy() {
    #expect(!Self.known(Self.lazyResume()).plan(.eager).isLazy)
    #expect(ResumeHistory().plan(.lazy).isLazy)
  }

  @Test("Resumes are eager, and say why, if a lazy restore has no advantage")
  func eager() {
    var small = ResumeHistory()
    small.recordEager(1_500_000, bytes: 1 << 20)
    let cases: [(ResumeHistory, String)] = [
      (small, "small"),
      (Self.known(Self.lazyResume(waited: 14_000_000)), "17.0 ms lazily, 18.0 ms in full"),
      (Self.known(Self.lazyResume(wanted: 9 << 20)), "most of its memory"),
      (Self.known(Self.lazyResume(halt: Self.halt)), "forks"),
    ]
    for (history, reason) in cases {
      let plan = history.plan(.auto)
      #expect(!plan.isLazy)
      #expect(plan.reason.contains(reason), "\(plan.reason)")
    }
  }

  @Test("After sixteen eager resumes a lazy restore is tried again")
  func secondChance() {
    var history = Self.known(Self.lazyResume(halt: Self.halt))
    for _ in 1..<ResumeHistory.patience {
      history.recordEager(18_000_000, bytes: 16 << 20)
      #expect(!history.plan(.auto).isLazy)
    }
    history.recordEager(18_000_000, bytes: 16 << 20)
    #expect(history.plan(.auto).isLazy)
  }
}
