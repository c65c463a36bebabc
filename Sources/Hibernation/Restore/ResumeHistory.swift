/// The way of resuming that a worker's policy asks for.
public enum ResumePreference: String, Sendable, CaseIterable {
  /// Resumes lazily, unless that was slower in the worker's own history.
  case auto
  case eager
  /// Resumes lazily if that is possible.
  case lazy = "lazy"
}

/// The results of a worker's resumes, from which the mode of the next one is chosen. It is kept in
/// memory and ends with the daemon, as the addresses of the working set do.
struct ResumeHistory: Sendable {
  /// The result of a lazy restore. Times are in ns, sizes in bytes.
  struct LazyResume: Sendable {
    /// The time until the worker ran.
    var beforeRunning: Int64
    /// The time for which it waited for pages after that.
    var waited: Int64
    /// The pages that were in place before it ran, and the pages that it waited for.
    var wanted: UInt64
    var total: UInt64
    /// True if nearly all pages were missing, to learn the working set, so that the times aren't
    /// typical.
    var wasLearning: Bool
    /// The halt of the worker if it forked or moved memory: it was frozen until all pages were in
    /// place.
    var halt: Halt?
    /// The number of pages that it waited for before its first output.
    var waits = 0
    /// True if pages were filled one by one once more, because it had waited for many at the resume
    /// before.
    var learnedMore = false

    /// The time until a waiting client could have an answer, without the worker's own work.
    var untilAnswer: Int64 {
      beforeRunning + waited + (halt?.length ?? 0)
    }
  }

  private var eager = RecentTimes()
  private var lazy = RecentTimes()
  private var bytes: UInt64 = 0
  private(set) var lastLazy: LazyResume?
  /// The number of eager resumes since a lazy restore.
  private var eagerInARow = 0

  /// The number of resumes that learned more, and the number of resumes since the last of them.
  private var (learnedMore, sinceLearning) = (0, 0)

  /// The reason why the worker can't be restored lazily, even if that would be faster. An image for
  /// lazy restore can't be a base, so a lazy restore isn't tried again each time.
  private var refusal: String?

  /// Below this size, in bytes, the layout and the background fill cost as much as they save.
  static let minLazyBytes: UInt64 = 2 << 20
  /// The number of eager resumes after which the lazy mode is tried again: programs change.
  static let resumesUntilRetry = 16
  /// The number of lazy resumes that decide. One slow resume doesn't: the machine may have been
  /// busy.
  static let minSamples = 3
  /// The number of bytes that an eager resume restores in about a second on one core of a small
  /// machine. It decides when an eager resume is worth a trial, before the worker has had one.
  static let eagerPerSecond = 400.0 * 1_000_000

  /// A worker that waits for more pages than this needs other pages than the known ones.
  static let manyWaits = 32
  /// The number of resumes that learn more. A worker that needs other pages each time doesn't learn
  /// without end: a page alone takes as long as a chunk.
  static let maxLearningResumes = 3

  /// True if the next lazy restore has to show the use of single pages. Whole chunks show one page
  /// for each chunk, so by them alone a worker with a large working set waits at ten resumes until
  /// all of it is known.
  var learnsMore: Bool {
    (lastLazy?.waits ?? 0) > Self.manyWaits && learnedMore < Self.maxLearningResumes
  }

  mutating func recordEager(_ nanoseconds: Int64, bytes: UInt64) {
    eager.add(nanoseconds)
    self.bytes = bytes
    eagerInARow += 1
  }

  mutating func record(_ resume: LazyResume) {
    // It is another program by now.
    if eagerInARow >= Self.resumesUntilRetry { (lazy, learnedMore) = (RecentTimes(), 0) }
    if !resume.wasLearning, !resume.learnedMore { lazy.add(resume.untilAnswer) }
    if resume.learnedMore {
      (learnedMore, sinceLearning) = (learnedMore + 1, 0)
    } else {
      sinceLearning += 1
      if sinceLearning >= Self.resumesUntilRetry { learnedMore = 0 }
    }
    bytes = resume.total
    lastLazy = resume
    eagerInARow = 0
  }

  mutating func record(refusal: String) { self.refusal = refusal }

  /// Chooses the way of the next resume.
  ///
  /// - Parameter anonymous: the number of bytes of anonymous memory that the worker has now.
  func plan(_ preference: ResumePreference, anonymous: UInt64) -> RestorePlan {
    switch preference {
    case .eager: return RestorePlan(eager: "hibernate.resume is eager")
    case .lazy: return RestorePlan(lazy: "hibernate.resume is lazy")
    case .auto: break
    }
    if let refusal { return RestorePlan(eager: refusal) }
    if max(bytes, anonymous) < Self.minLazyBytes {
      return RestorePlan(eager: "small: a full restore is as fast")
    }
    guard let lastLazy, eagerInARow < Self.resumesUntilRetry else {
      return RestorePlan(lazy: "to learn which pages it needs first")
    }
    guard lazy.count >= Self.minSamples, let lazy = lazy.median else {
      return RestorePlan(lazy: "the pages that it needs first are known")
    }
    guard let eager = eager.median else {
      let expected = Double(bytes) / Self.eagerPerSecond * 1_000_000_000
      return Double(lazy) > expected * 1.5
        ? RestorePlan(eager: "\(Self.text(lazy)) ms lazily: to compare with a full restore")
        : RestorePlan(lazy: "\(Self.text(lazy)) ms until it had what it needed")
    }
    let times = "\(Self.text(lazy)) ms lazily, \(Self.text(eager)) ms in full"
    if lazy < eager { return RestorePlan(lazy: times) }
    return RestorePlan(eager: lastLazy.halt == nil ? times : "\(times): it forks or moves memory")
  }

  private static func text(_ nanoseconds: Int64) -> String {
    let tenths = (nanoseconds + 50_000) / 100_000
    return "\(tenths / 10).\(tenths % 10)"
  }
}

/// The last few times, in ns. Their median is the typical one: a mean would include one busy moment
/// for a long time.
private struct RecentTimes: Sendable {
  private static let limit = 5
  private var times: [Int64] = []

  var count: Int { times.count }

  var median: Int64? { times.isEmpty ? nil : times.sorted()[(times.count - 1) / 2] }

  mutating func add(_ time: Int64) {
    times.append(time)
    if times.count > Self.limit { times.removeFirst() }
  }
}
