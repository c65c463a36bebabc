import CLinux
import Glibc
import Linux

/// Fills the missing pages of a running worker: first those that it waits for, then all others. One
/// thread uses it.
///
/// Why it is safe:
/// - The worker has the userfaultfds too. If the pager dies, the worker waits at the next missing
///   page until a new daemon continues from the image and the journals.
/// - A worker that drops or unmaps memory waits until its message is read, and then runs on.
/// - A worker that forks or moves memory is frozen before its message is read. It runs when all
///   pages are in place; if it is trimmed, when its child's pages are. Only the pager has a child's
///   userfaultfd. If the pager dies then, the journal shows it, and the child stays frozen.
/// - Nothing is filled while a message waits to be read: the kernel refuses that. So each page is
///   filled at its address of that moment.
/// - A page is filled once. If it is missing after that, the program has dropped it itself.
final class Pager {
  let image: ImageReader
  let target: HibernationTarget
  let cgroup: WorkerCgroup
  private(set) var processes: [LazyProcess]
  /// The buffers while they are needed. The second one is for forked children: they appear while
  /// the first one has a chunk of their parent.
  var scratch: (forWorker: ChunkBuffer?, forChild: ChunkBuffer?)
  /// True if an earlier pager has begun the fill and died.
  let isContinuation: Bool
  var beforeRemoval: (() -> Void)?
  /// True if the image or its base stays on disk at the end, for the next hibernation.
  var keepsBase: Bool
  /// Returns true if the base must be removed: the policy has changed, or the disk is short.
  var mustDropBase: (() -> Bool)?
  /// True if this pager or (in a recovery) an earlier daemon has frozen the group.
  var isFrozen: Bool
  /// True if the worker is suspended, and isn't thawed at the end.
  var staysFrozen = false
  /// The halt of a worker that forked or moved memory.
  var halt: Halt?
  /// Returns whether the resume has let the worker run, and `nil` until that is known. If the
  /// closure is missing, writes won't be tracked.
  var isAwake: (() -> Bool?)?
  /// What is known about the writes of each process at the end, by pid.
  var tracked: [Int32: TrackedFill] = [:]
  /// Called with the length of each chunk that is in place.
  var filled: ((Int) -> Void)?
  /// The remaining chunks of the worker or a child, while all of them are filled.
  var readAhead: ChunkReadAhead?
  /// Detects the first output. Few of the pages that are needed after it are learned.
  var firstOutput: FirstOutput
  /// The number of chunks that threads have waited for, and the chunks of a trimmed worker.
  private var answered = 0
  var sequentialUse = SequentialUse()
  /// True while chunks are filled in the order in which the worker uses them, faster than it could
  /// wait for each. Its threads are woken after a number of chunks.
  var fillsInOrder = false
  /// Set for a trimmed worker: until then only pages that are needed are filled.
  var trimEnd: TrimEnd?
  /// What the pager of a trimmed worker waits for.
  var wakeups: PagerWakeups?
  /// What is missing, if this pager has ended so that the worker can be trimmed again.
  var handedOver: MissingPages?
  var forkCost = ForkCost()
  /// True if the halted worker gets all pages, as without a trim.
  var endsTrim = false
  /// The reason why a trimmed worker was halted, as a clause.
  var haltReason: String?
  /// True if what is missing is known from an earlier pager of this daemon.
  var isCounted = false
  /// Called with the number of bytes that are missing, when that was counted.
  var recounted: ((UInt64) -> Void)?
  /// A worker that has waited for this number of chunks gets the others at once.
  private static let answersBeforeFill = 8
  /// The fill begins after this time, in ns, even if no output was seen: some output can't be.
  private static let grace: Int64 = 10_000_000
  /// The resume's turn, which ends with the worker's first answer.
  var resumeTurn: ResumeTurns.Turn?
  var hasTurn = false
  /// The time for which threads waited for pages, in ns.
  private(set) var waited: Int64 = 0
  let retry: FillRetry

  init(
    image: ImageReader, target: HibernationTarget, cgroup: WorkerCgroup,
    pagedProcesses: [PagedProcess], firstOutput: FirstOutput, isFrozen: Bool, isContinuation: Bool,
    keepsBase: Bool = false, retry: FillRetry
  ) throws {
    self.retry = retry
    self.isContinuation = isContinuation
    self.keepsBase = keepsBase
    self.image = image
    self.target = target
    self.cgroup = cgroup
    self.isFrozen = isFrozen
    processes = try pagedProcesses.map { try LazyProcess($0, image) }
    self.firstOutput = firstOutput
  }

  /// Runs until no page is missing any more, and removes the image (commit B).
  ///
  /// - Returns: false if the pager of a trimmed worker rests; see `serveTrimmed`.
  func run(_ learning: Learning?) throws -> Bool {
    // An earlier pager has filled everything.
    if processes.contains(where: { $0.journal.phase == .complete }) {
      try tearDown()
      return true
    }
    for process in processes where !process.unfinished.isEmpty { try finish(process) }
    if let trimEnd {
      // A thread of the worker stands still until its page is in place.
      if try !Thread.urgently({ try serveTrimmed(until: trimEnd) }) { return false }
      if handedOver != nil { return true }
    } else {
      try FillTurns.shared.whileAnswering { try serveFirst(learning) }
    }
    try fillRemaining()
    try drainEvents()
    FaultPoint.filled.pass()
    try tearDown()
    return true
  }

  /// Serves the worker until its first answer, which needs the processors and the memory bandwidth.
  private func serveFirst(_ learning: Learning?) throws {
    defer { resumeTurn?.end() }
    if let learning, learning.isLearning, !isFrozen { try learnWorkingSet(learning) }
    let end = Clocks.monotonic + Self.grace
    while !isFrozen, Clocks.monotonic < end, answered < Self.answersBeforeFill, !firstOutput.check()
    {
      try serveAll(wait: 1)
    }
  }

  // MARK: faults

  /// Fills the pages for all waiting threads. Returns true if a thread waited.
  ///
  /// - Parameter other: a descriptor that ends the wait when it can be read.
  @discardableResult
  func serveAll(wait: Int32, singly: Bool = false, also other: Int32? = nil) throws -> Bool {
    var polled = processes.map {
      pollfd(fd: $0.userfault.descriptor.raw, events: Int16(POLLIN), revents: 0)
    }
    if let other { polled.append(pollfd(fd: other, events: Int16(POLLIN), revents: 0)) }
    let isWaiting = processes.contains { !$0.hasVanished && !$0.faults.isEmpty }
    guard poll(&polled, nfds_t(polled.count), isWaiting ? 0 : wait) > 0 || isWaiting else {
      return false
    }
    // A process can make its userfaultfd blocking. A pager at rest repairs that, with pauses.
    if other == nil, polled.contains(where: { $0.revents & Int16(POLLERR) != 0 }) {
      for process in processes where !process.hasVanished { process.userfault.makeNonblocking() }
      pauseThread(for: .milliseconds(1))
    }
    let began = Clocks.monotonic
    var hasServed = false
    let isAsked = polled.prefix(processes.count).contains { $0.revents & Int16(POLLIN) != 0 }
    if isWaiting || isAsked { try loadLists() }
    for (process, result) in zip(processes, polled)
    where !process.hasVanished
      && (result.revents & Int16(POLLIN) != 0 || !process.faults.isEmpty)
    {
      try serve(process, singly: singly)
      hasServed = true
    }
    waited += Clocks.monotonic - began
    return hasServed
  }

  /// - Parameter isHalted: true answers threads although the worker is being frozen.
  func serve(_ process: LazyProcess, singly: Bool, isHalted: Bool = false) throws {
    while !process.hasVanished {
      try handlePendingEvents(of: process)
      // All pages are filled while the worker is frozen.
      if isFrozen, !isHalted { return }
      if let page = process.faults.popLast() {
        try answer(page, process, singly: singly)
        // A worker that needs most of its memory waits again before this loop has ended, and the
        // chunks that are ready are probably those that it needs next.
        if !singly, answered >= Self.answersBeforeFill { return }
      } else if let received = try nextMessage(of: process) {
        try receive(received, of: process)
      } else {
        return
      }
    }
  }

  /// Records a page for which a thread waits, if the image has it. Pages that the program has
  /// freed, or has never used, can't be put in place before it runs.
  func recordFault(_ page: UInt64, of process: LazyProcess) {
    guard let original = process.layout.original(of: page), process.chunk(with: original) != nil
    else { return }
    process.touched.insert(page, hasAnswered: firstOutput.check())
  }

  /// Fills the page at an address for which a thread waits. If the layout changes meanwhile, it
  /// tries again.
  private func answer(_ page: UInt64, _ process: LazyProcess, singly: Bool) throws {
    recordFault(page, of: process)
    var changes: Int
    repeat {
      changes = process.changes
      try fillAnswer(page, process, singly: singly)
    } while process.changes != changes && !process.hasVanished && !isFrozen
  }

  private func fillAnswer(_ page: UInt64, _ process: LazyProcess, singly: Bool) throws {
    if let original = process.layout.original(of: page), let chunk = process.chunk(with: original),
      !process.done.contains(chunk), !process.filled.contains(original)
    {
      if singly {
        let (source, _) = try retry.run {
          try process.cached(chunk, page: original, of: image, buffer: buffer())
        }
        try fillRun(
          original, from: source, length: pageSize, tracked: tracks(chunk, of: process),
          in: Destination(process))
        process.filled.insert(original)
        return
      }
      answered += 1
      sequentialUse.add(original, at: Clocks.monotonic)
      return try fill(
        readAhead?.claim(chunk) ?? .unread(chunk: chunk, step: image.steps[chunk]), of: process,
        Destination(process),
        first: original)
    }
    // The page was never in the image, or the program has dropped it since.
    switch try fillZeros(at: page, of: process) {
    case .present: process.userfault.wake(page, pageSize)
    case .eventFirst:
      process.faults.append(page)
      try handlePendingEvents(of: process)
    case .vanished: process.hasVanished = true
    // Another thread has unmapped the memory, which wakes no thread that waits for it.
    case .notRegistered: process.userfault.wake(page, pageSize)
    case .filled: break
    }
  }
}
