import Testing

@testable import Hibernation

/// The mode of a worker's next resume, chosen from the results of earlier resumes.
struct ResumeHistoryTests {
  private static func lazyResume(
    beforeRunning: Int64 = 3_000_000, waited: Int64 = 500_000, wanted: UInt64 = 2 << 20,
    learning: Bool = false, halt: Halt? = nil, waits: Int = 0, more: Bool = false
  ) -> ResumeHistory.LazyResume {
    ResumeHistory.LazyResume(
      beforeRunning: beforeRunning, waited: waited, wanted: wanted, total: 16 << 20,
      wasLearning: learning, halt: halt, waits: waits, learnedMore: more)
  }

  private static let halt = Halt(began: 0, length: 20_000_000)

  /// Returns a history with an eager resume and a learned working set.
  private static func learned(_ last: ResumeHistory.LazyResume? = nil) -> ResumeHistory {
    var history = ResumeHistory()
    history.recordEager(18_000_000, bytes: 16 << 20)
    history.record(lazyResume(beforeRunning: 1_000_000, waited: 40_000_000, learning: true))
    for _ in 0..<3 { if let last { history.record(last) } }
    return history
  }

  @Test
  func `The first resume is lazy and learns, and later ones are lazy while they are fast enough`() {
    var history = ResumeHistory()
    let first = history.plan(.auto, anonymous: 16 << 20)
    #expect(first == RestorePlan(lazy: "to learn which pages it needs first"))
    history.record(Self.lazyResume(beforeRunning: 1_000_000, waited: 40_000_000, learning: true))
    #expect(history.plan(.auto, anonymous: 16 << 20).isLazy)
    for _ in 0..<3 { history.record(Self.lazyResume()) }
    let plan = history.plan(.auto, anonymous: 16 << 20)
    #expect(plan == RestorePlan(lazy: "3.5 ms until it had what it needed"))
    // The worker's pages are read and written back at 400 MB a second: 42 ms.
    for _ in 0..<5 { history.record(Self.lazyResume(waited: 70_000_000)) }
    #expect(!history.plan(.auto, anonymous: 16 << 20).isLazy)
    history.recordEager(80_000_000, bytes: 16 << 20)
    #expect(history.plan(.auto, anonymous: 16 << 20).reason.hasSuffix("lazily, 80.0 ms in full"))
  }

  @Test func `One or two slow lazy resumes, on a busy machine, don't make the next ones eager`() {
    var history = ResumeHistory()
    history.record(Self.lazyResume(learning: true))
    for _ in 0..<2 { history.record(Self.lazyResume(waited: 900_000_000)) }
    #expect(history.plan(.auto, anonymous: 16 << 20).isLazy)
    for _ in 0..<3 { history.record(Self.lazyResume()) }
    history.recordEager(18_000_000, bytes: 16 << 20)
    #expect(history.plan(.auto, anonymous: 16 << 20).isLazy)
  }

  @Test func `A small worker's first resume is eager, and its present size counts`() {
    #expect(!ResumeHistory().plan(.auto, anonymous: 1 << 20).isLazy)
    var history = ResumeHistory()
    history.recordEager(1_500_000, bytes: 1 << 20)
    #expect(history.plan(.auto, anonymous: 8 << 20).isLazy)
    #expect(history.plan(.auto, anonymous: 1 << 20).reason.hasPrefix("small"))
  }

  @Test func `The policy's choice of a resume mode overrides the history`() {
    #expect(!Self.learned(Self.lazyResume()).plan(.eager, anonymous: 0).isLazy)
    #expect(ResumeHistory().plan(.lazy, anonymous: 0).isLazy)
  }

  @Test func `Resumes are eager, and say why, if a lazy restore has no advantage`() {
    let cases: [(ResumeHistory, String)] = [
      (Self.learned(Self.lazyResume(waited: 16_000_000)), "19.0 ms lazily, 18.0 ms in full"),
      (Self.learned(Self.lazyResume(halt: Self.halt)), "forks"),
    ]
    for (history, reason) in cases {
      let plan = history.plan(.auto, anonymous: 16 << 20)
      #expect(!plan.isLazy)
      #expect(plan.reason.contains(reason), "\(plan.reason)")
    }
  }

  @Test func `After sixteen eager resumes a lazy restore is tried again`() {
    var history = Self.learned(Self.lazyResume(halt: Self.halt))
    for _ in 1..<ResumeHistory.resumesUntilRetry {
      history.recordEager(18_000_000, bytes: 16 << 20)
      #expect(!history.plan(.auto, anonymous: 16 << 20).isLazy)
    }
    history.recordEager(18_000_000, bytes: 16 << 20)
    #expect(history.plan(.auto, anonymous: 16 << 20).isLazy)
  }

  @Test(
    "A worker that waited for many pages learns more at the next resume, until it waits for few")
  func learnsMore() {
    var history = ResumeHistory()
    #expect(!history.learnsMore)
    history.record(Self.lazyResume(learning: true, waits: 600))
    #expect(history.learnsMore)
    history.record(Self.lazyResume(waits: 400, more: true))
    #expect(history.learnsMore)
    history.record(Self.lazyResume(waits: 5, more: true))
    #expect(!history.learnsMore)
  }

  @Test(
    "A worker that needs other pages each time learns three times more, and again 16 resumes later"
  )
  func learnsNotForEver() {
    var history = ResumeHistory()
    history.record(Self.lazyResume(learning: true, waits: 600))
    for _ in 0..<3 {
      #expect(history.learnsMore)
      history.record(Self.lazyResume(waits: 400, more: true))
    }
    for _ in 0..<16 {
      #expect(!history.learnsMore)
      history.record(Self.lazyResume(waits: 400))
    }
    #expect(history.learnsMore)
  }

  @Test func `A worker that needs many other pages every second time doesn't learn for ever`() {
    var history = ResumeHistory()
    history.record(Self.lazyResume(learning: true, waits: 600))
    var learned = 0
    for _ in 0..<20 {
      for waits in [400, 400, 2] {
        let learns = history.learnsMore
        learned += learns ? 1 : 0
        history.record(Self.lazyResume(waits: waits, more: learns))
      }
    }
    #expect(learned < 12, "of 60")
  }

  @Test func `The times of resumes that learn more don't decide between lazy and full`() {
    var history = ResumeHistory()
    history.record(Self.lazyResume(learning: true, waits: 600))
    for _ in 0..<3 { history.record(Self.lazyResume(waited: 900_000_000, waits: 400, more: true)) }
    let plan = history.plan(.auto, anonymous: 16 << 20)
    #expect(plan == RestorePlan(lazy: "the pages that it needs first are known"))
  }
}
