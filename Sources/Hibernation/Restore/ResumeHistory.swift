/// What a worker's policy wants of its resumes.
public enum ResumePreference: String, Sendable, CaseIterable {
  /// Whichever of the two its own history says is faster.
  case auto
  case eager
  /// Wherever it is possible.
  case lazy = "lazy"
}

/// How a worker's resumes went, and which mode that speaks for. Kept in memory: it ends with the
/// daemon, as the addresses of its working set do.
struct ResumeHistory: Sendable {
  /// What came of a lazy restore. Times in ns, sizes in bytes.
  struct LazyResume: Sendable {
    /// Until it ran.
    var beforeRunning: Int64
    /// What it waited for, after that.
    var waited: Int64
    /// Pages that were in place before it ran, or that it waited for.
    var wanted: UInt64
    var total: UInt64
    /// Nearly everything was missing, to learn from it: its times say nothing.
    var wasLearning: Bool
    /// It forked, or gave memory back, so that it stood until everything was there.
    var halt: Halt?

    /// Until whoever waits for it can have had an answer, apart from the worker's own work.
    var untilAnswer: Int64 {
      beforeRunning + waited + (halt.map { $0.delaysWork ? $0.length : 0 } ?? 0)
    }
  }

  /// Means of late, in ns.
  private var eager: Int64?
  private var lazy: Int64?
  private var bytes: UInt64 = 0
  private var lastLazy: LazyResume?
  /// Eager resumes since a lazy restore.
  private var eagerInARow = 0

  /// Why it can't be restored lazily, whatever speaks for it. Images that are laid out for
  /// that can't be built on, so it isn't asked again each time.
  private var refusal: String?

  /// Under it, laying out and filling in the background cost as much as they bring.
  static let smallest: UInt64 = 2 << 20
  /// A program changes: after so many eager resumes the other mode gets another chance.
  static let patience = 16

  mutating func recordEager(_ nanoseconds: Int64, bytes: UInt64) {
    eager = Self.mean(eager, nanoseconds)
    self.bytes = bytes
    eagerInARow += 1
  }

  mutating func record(_ resume: LazyResume) {
    if !resume.wasLearning { lazy = Self.mean(lazy, resume.untilAnswer) }
    bytes = resume.total
    lastLazy = resume
    eagerInARow = 0
  }

  mutating func record(refusal: String) { self.refusal = refusal }

  func plan(_ preference: ResumePreference) -> RestorePlan {
    switch preference {
    case .eager: return RestorePlan(eager: "hibernate.resume is eager")
    case .lazy: return RestorePlan(lazy: "hibernate.resume is lazy")
    case .auto: break
    }
    if let refusal { return RestorePlan(eager: refusal) }
    guard let eager else {
      return RestorePlan(eager: "first resume: no history yet")
    }
    if bytes < Self.smallest {
      return RestorePlan(eager: "small: a full restore is as fast")
    }
    guard let lastLazy, eagerInARow < Self.patience else {
      return RestorePlan(lazy: "to learn which pages it needs first")
    }
    if lastLazy.wanted * 2 > lastLazy.total {
      return RestorePlan(eager: "it needs most of its memory at once")
    }
    guard let lazy else {
      return RestorePlan(lazy: "the pages that it needs first are known")
    }
    let times = "\(Self.text(lazy)) ms lazily, \(Self.text(eager)) ms in full"
    if lazy * 10 < eager * 9 { return RestorePlan(lazy: times) }
    let halt =
      lastLazy.halt?.delaysWork == true
      ? ": it forks or frees memory while it works" : ""
    return RestorePlan(eager: "\(times)\(halt)")
  }

  private static func mean(_ old: Int64?, _ new: Int64) -> Int64 {
    guard let old else { return new }
    return (old * 3 + new) / 4
  }

  private static func text(_ nanoseconds: Int64) -> String {
    let tenths = (nanoseconds + 50_000) / 100_000
    return "\(tenths / 10).\(tenths % 10)"
  }
}
