import Linux

/// The pages that a process needs soon after a resume, as far as they are known.
struct WorkingSet: Sendable {
  /// The addresses of the pages.
  private(set) var pages: Set<UInt64>
  /// True if enough pages were learned that a request must have been among the resumes. A timer
  /// wakes a worker, too, and needs a page or two: if such a resume counted, the first request
  /// after it would wait for each of its hundreds of pages.
  var isLearned: Bool { early.count + late.count >= Self.minLearnedPages }
  /// The number of learned pages from which on the set counts as known. A program that needs fewer
  /// pages waits for less than 1 ms in all.
  static let minLearnedPages = 32
  /// The learned pages, the earliest first: those that were needed before the first output, and
  /// those after it.
  private var (early, late): ([UInt64], [UInt64]) = ([], [])

  /// The pages that were learned.
  var learned: [UInt64] { early + late }

  /// - Parameter pages: pages that don't count as learned.
  init(pages: Set<UInt64> = []) { self.pages = pages }

  /// Adds a page without counting it as learned: it has to be in place for another reason.
  mutating func insert(_ page: UInt64) { pages.insert(page) }

  /// Adds pages that a thread waited for at a resume. The use of a page that is in place can't be
  /// seen, so what was learned stays, up to a limit. Beyond it, the pages that were learned longest
  /// ago leave the set: if the program still needs them, it waits for them at the next resume, and
  /// they are learned again.
  ///
  /// - Parameter memory: the number of bytes of the worker's image.
  mutating func learn(_ touched: TouchedPages, ofMemory memory: UInt64) {
    add(touched.early, to: \.early, limit: Self.limit(ofMemory: memory))
    add(touched.late, to: \.late, limit: Self.lateLimit)
  }

  private mutating func add(
    _ touched: [UInt64], to list: WritableKeyPath<WorkingSet, [UInt64]>, limit: Int
  ) {
    for page in touched where pages.insert(page).inserted { self[keyPath: list].append(page) }
    let excess = self[keyPath: list].count - limit
    guard excess > 0 else { return }
    pages.subtract(self[keyPath: list][..<excess])
    self[keyPath: list].removeFirst(excess)
  }

  /// Returns the pages that stay in memory while the process sleeps, if it keeps its working set:
  /// those that were learned first, at most a quarter of its memory, and those that have to be in
  /// place for another reason.
  ///
  /// - Parameter memory: the number of bytes of the process.
  func kept(ofMemory memory: UInt64) -> Set<UInt64> {
    pages.subtracting(learned.dropFirst(Int(memory / 4 / pageSize)))
  }

  /// Returns the greatest number of learned pages. It is 8 MiB; for a worker with more than 32 MiB
  /// it is a quarter of that, up to 16 MiB: a language server for JavaScript needs 9 MiB for a
  /// request. A set of more than a third would make the next image a complete one
  /// (`Base.maxChangeDivisor`).
  static func limit(ofMemory memory: UInt64) -> Int {
    Int(max(8 << 20, min(16 << 20, memory / 4)) / pageSize)
  }

  /// The greatest number of pages that are learned after the first output: 2 MiB, which take 1 ms
  /// to put in place.
  static let lateLimit = (2 << 20) / Int(pageSize)
}

/// The pages that threads of a process waited for since it was resumed, in that order.
struct TouchedPages: Sendable {
  /// Pages that were needed before the first output, which counts as the answer.
  private(set) var early: [UInt64] = []
  /// Pages that were needed after the first output. A program that has answered may use all of its
  /// memory (a garbage collection, say), and pages for that would only delay the next answer. Few
  /// are learned nevertheless: the first output may have been a line in a log.
  private(set) var late: [UInt64] = []
  /// The number of pages, those included that are in neither list: each of their faults counts.
  private(set) var count = 0

  static let lateLimit = 64
  /// The greatest number of early pages: each is a wait of 0.1 ms. An answer that takes longer
  /// isn't made much faster by more.
  static let earlyLimit = 1024

  var pages: [UInt64] { early + late }

  mutating func insert(_ page: UInt64, hasAnswered: Bool) {
    // A set would be larger than both lists, and a daemon has these for each trimmed worker.
    if early.contains(page) || late.contains(page) { return }
    count += 1
    if hasAnswered {
      if late.count < Self.lateLimit { late.append(page) }
    } else if early.count < Self.earlyLimit {
      early.append(page)
    }
  }
}

extension Hibernator {
  /// Returns the working sets of a worker's processes, without those that are empty.
  func learnedSets(of name: String) -> [WorkingSet] {
    workingSets[name]?.values.filter { !$0.pages.isEmpty } ?? []
  }
}
