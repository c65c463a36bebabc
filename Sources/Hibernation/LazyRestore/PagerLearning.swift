import Linux

/// How the pager learns the working set.
extension Pager {
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
