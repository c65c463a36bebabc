import Linux

/// How the pager learns the working set.
extension Pager {
  /// How the working set is learned from faults, and how long.
  struct Learning: Sendable {
    /// True if at first only pages that a thread waits for are filled, one by one, so that each use
    /// is seen.
    var isLearning: Bool
    /// True if learning ends with the worker's first output: few of the pages that it needs after
    /// that are learned.
    var untilOutput = false
    var length: Duration = .milliseconds(150)
    var quiet: Duration = .milliseconds(50)
    /// The number of pages (512: 2 MiB) after which a worker gets whole chunks: one by one, more
    /// pages would take longer than all of its memory at once.
    var limit = 512
  }

  /// Fills only pages that a thread waits for, until no more faults come.
  func learnWorkingSet(_ learning: Learning) throws {
    defer { for process in processes { process.dropCache() } }
    let end = Clocks.monotonic + learning.length.nanoseconds
    var last = Clocks.monotonic
    while !isFrozen, Clocks.monotonic < end {
      if try serveAll(wait: 5, singly: true) { last = Clocks.monotonic }
      let hasAnswered = firstOutput.check()
      if learning.untilOutput, hasAnswered { return }
      if hasAnswered, LazyProcess.cacheIsCrowded {
        for process in processes { process.dropCache() }
      }
      if Clocks.monotonic - last > ResumeTurns.quiet { resumeTurn?.end() }
      if Clocks.monotonic - last > learning.quiet.nanoseconds { return }
      if processes.reduce(0, { $0 + $1.touched.count }) > learning.limit { return }
    }
  }
}

extension Duration {
  var nanoseconds: Int64 {
    components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
  }
}
