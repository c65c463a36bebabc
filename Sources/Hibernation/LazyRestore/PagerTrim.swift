import CLinux
import Glibc
import Linux

/// How the pager serves a trimmed worker: what it doesn't need stays in the image.
extension Pager {
  var isTrimmed: Bool { trimEnd != nil }
  /// Pages of zeros that are put in place at once where the image has nothing: 256 KiB.
  private static let zeroRun = 64
  /// The time for which the thread of all pagers at rest serves one worker.
  private static let turn = Duration.milliseconds(5)

  /// Fills what threads wait for until `end` is requested, all processes have ended, or the worker
  /// is halted and can't stay trimmed.
  ///
  /// - Returns: false if the worker hasn't needed a page for a while. The pager rests then: call
  ///   this again when its `wakeups` are readable.
  func serveTrimmed(until end: TrimEnd) throws -> Bool {
    var isResting = false
    Self.servingTrimmed.add(1, ordering: .relaxed)
    defer { Self.servingTrimmed.subtract(1, ordering: .relaxed) }
    // If this pager dies after that, the next one fills everything.
    defer {
      if handedOver == nil, !isResting {
        for process in processes { process.journal.phase = .filling }
      }
    }
    let wakeups = try wakeups ?? beginTrim(until: end)
    let isBrief = end.isBrief.load(ordering: .relaxed)
    let turn = Deadline(in: Self.turn)
    var stage = Stage.serving
    while !end.isRequested, wakeups.hasLiving {
      if isFrozen, !endsTrim { try continueTrimmed() }
      if end.wantsHandOver, !endsTrim {
        try loadLists()
        if try handOver(to: end) { return true }
      }
      if endsTrim { return true }
      end.clearUnlessAsked()
      if try serveAll(wait: stage.wait(end), also: wakeups.descriptor) || end.wantsHandOver {
        stage = .serving
      } else {
        wakeups.update()
        stage = freeMemory(after: stage)
        isResting = stage == .resting
        if isResting { return false }
      }
      if isBrief {
        isResting = turn.hasPassed && isUnneeded
        if isResting { return false }
      } else if sequentialUse.isSeen {
        sequentialUse.reset()
        try fillRemaining(whileNeeded: true)
      }
    }
    try loadLists()
    return true
  }

  /// False if the worker waits for this pager, and nothing would end the pager's rest.
  private var isUnneeded: Bool {
    !isFrozen && !endsTrim && processes.allSatisfy { $0.hasVanished || $0.faults.isEmpty }
  }

  private func beginTrim(until end: TrimEnd) throws -> PagerWakeups {
    FaultPoint.trimmed.pass()
    resumeTurn?.end()
    if isContinuation {
      try recordPresentPages()
      for process in processes {
        try retry.run { () throws(SystemCallError) in try process.tryFaultsAgain() }
      }
    }
    for process in processes {
      try retry.run { () throws(SystemCallError) in
        _ = try readIfPossible { () throws(SystemCallError) in try process.openPages() }
      }
    }
    let made = try retry.run { try PagerWakeups(end, processes) }
    wakeups = made
    if isContinuation, !isCounted { recount() }
    return made
  }

  /// Waits on for a thread that doesn't end its call, because it gets no processor. A trim lasts
  /// for hours, in which a machine may also be suspended. Returns false if the worker isn't
  /// trimmed.
  func waitsOn(for process: LazyProcess) throws -> Bool {
    guard isTrimmed else { return false }
    pauseThread(for: .milliseconds(1))
    if !process.hasMemory { process.hasVanished = true }
    return true
  }

  /// Records what an earlier pager has put in place.
  private func recordPresentPages() throws {
    for process in processes {
      var pages: [PageRange]?
      // Memory that a thread has just moved isn't where the layout says.
      repeat {
        try handlePendingEvents(of: process)
        pages = try retry.run { () throws(SystemCallError) in
          try readIfPossible { () throws(SystemCallError) in
            try PageMap(pid: process.pid).populatedPages(inRegistered: process.mappings)
          }
        }
      } while !process.hasVanished && process.userfault.hasEventInFlight
      process.didFind(pages ?? [])
    }
  }

  // MARK: pages of zeros

  /// Fills a page that the image doesn't have. A trimmed worker gets the empty pages behind it,
  /// too: a program that uses new memory mostly uses it in order.
  func fillZeros(at page: UInt64, of process: LazyProcess) throws -> Userfault.Filling {
    let count = isTrimmed ? emptyPages(from: page, of: process) : 1
    let result = try retry.run { () throws(SystemCallError) in
      try process.userfault.fillZeros(page, UInt64(count) * pageSize)
    }
    guard count > 1, result == .notRegistered || result == .present else { return result }
    return try retry.run { () throws(SystemCallError) in
      try process.userfault.fillZeros(page, pageSize)
    }
  }

  private func emptyPages(from page: UInt64, of process: LazyProcess) -> Int {
    var count = 1
    while count < Self.zeroRun, process.isEmpty(page + UInt64(count) * pageSize) { count += 1 }
    return count
  }
}

extension LazyProcess {
  /// Makes all threads that wait for a page try their accesses again, so that each sends a message
  /// about its page: an earlier pager may have read the first one, and died before it answered.
  fileprivate func tryFaultsAgain() throws(SystemCallError) {
    // They may have grown or moved since.
    let present = try readIfPossible { () throws(SystemCallError) in
      try MemoryMapping.headers(of: pid)
    }
    let ranges = mappings + (present ?? []).filter { $0.name != "[vsyscall]" }.map(\.range)
    guard let start = ranges.map(\.address).min(), let end = ranges.map(\.end).max() else { return }
    // There may be gaps.
    userfault.wake(start, end - start)
  }

  /// True if the image has nothing for an address that isn't in place already.
  func isEmpty(_ page: UInt64) -> Bool {
    guard let original = layout.original(of: page), let chunk = chunk(with: original) else {
      return true
    }
    return done.contains(chunk) || filled.contains(original)
  }

  /// The number of bytes that the image alone has.
  func missingLength(in image: ImageReader) -> UInt64 {
    if hasVanished { return 0 }
    var missing: UInt64 = 0
    for chunk in chunks where !done.contains(chunk) {
      for range in image.steps[chunk].ranges {
        var counted: UInt64 = 0
        while counted < range.length {
          let run = layout.currentRun(from: range.address + counted, range.length - counted)
          if run.address != nil { missing += run.length }
          counted += run.length
        }
      }
    }
    let single = filled.count { page in chunk(with: page).map { !done.contains($0) } ?? false }
    return missing - min(missing, UInt64(single) * pageSize)
  }
}
