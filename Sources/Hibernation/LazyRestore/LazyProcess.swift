import Glibc
import Linux
import Synchronization

/// A process whose missing pages the pager fills.
struct PagedProcess: Sendable {
  /// The index of the process in the image.
  let index: Int
  let handle: FaultHandle
  /// Pages of chunks of the background fill that are in place already.
  var presentPages: Set<UInt64> = []
  /// The tracker that records writes when all pages are in place. Without one, the next hibernation
  /// compares pages.
  var tracker: WriteTracker?
  /// True if an earlier pager has seen that the process has no memory of the image any more.
  var hasVanished = false
}

/// A process with missing pages. Only the pager's thread uses it.
final class LazyProcess {
  let paged: PagedProcess
  let pid: Int32
  let userfault: Userfault
  let journal: FaultJournal
  private(set) var layout: PageLayout
  /// The number of changes of `layout`.
  private(set) var changes = 0
  /// Where memory was moved that is in place, and may still be registered.
  var destinations: [Range<UInt64>] = []
  /// Pages for which a thread waits, and whose message has been read.
  var faults: [UInt64] = []
  /// Messages that an earlier pager read but didn't carry out, because it died before.
  var unfinished: [FaultJournal.Message]
  /// The background fill's chunks of the image and of its base, by their index in
  /// `ImageReader.steps`, sorted by address. They are dropped while the pager rests.
  private(set) var chunks: [Int] = []
  /// Chunks that are in place.
  var done = ChunkSet()
  /// Pages that were filled alone, by their address in the image.
  var filled: Set<UInt64> = []
  /// Where pages were filled whose threads haven't been woken.
  private var asleep: Range<UInt64>?
  /// Pages that a thread waited for.
  var touched = TouchedPages()
  /// True if the process has no memory any more.
  var hasVanished: Bool
  let tracker: WriteTracker?
  /// The mappings with missing pages, as they were at the hibernation.
  let mappings: [PageRange]
  /// The ranges of all chunks, sorted by address in the image.
  private var ranges: [(start: UInt64, end: UInt64, chunk: Int)] = []
  /// The pages of a trimmed worker, or of one in which a page is unexpectedly present.
  private var pages: PageMap?
  private var showsGuardPages = false
  private var cache: [Int: [UInt8]] = [:]
  private var cachedBytes = 0
  /// The number of bytes of chunks, of all processes, that stay decompressed while pages are filled
  /// one by one: 16 MiB. A first request to an interpreter touches 200 chunks of 16 KiB, nearly two
  /// pages of each, and without room for them each page costs its chunk's decompression again.
  private static let cacheLimit = 16 << 20
  /// Beyond this, only a process that hasn't answered yet keeps chunks: 8 MiB.
  private static let crowded = 8 << 20
  private static let cachedByAll = Atomic(0)
  /// Guard pages are looked for in at most this number of bytes at once: 1 MiB, in which the kernel
  /// reads 256 entries.
  private static let scannedAtOnce: UInt64 = 1 << 20

  init(_ paged: PagedProcess, _ image: ImageReader) throws {
    self.paged = paged
    let handle = paged.handle
    tracker = handle.userfault.tracksWrites ? paged.tracker : nil
    hasVanished = paged.hasVanished
    mappings = image.mappings.filter { Int($0.process) == paged.index }.map(\.range)
    filled = paged.presentPages
    // These pages will be among those that come back by themselves the next time, too.
    for page in paged.presentPages.sorted() { touched.insert(page, hasAnswered: true) }
    pid = handle.userfault.pid
    userfault = handle.userfault
    journal = handle.journal
    layout = try PageLayout(replaying: handle.journal.batches.closed)
    unfinished = handle.journal.batches.open
    findChunks(in: image)
  }

  func findChunks(in image: ImageReader) {
    for (chunk, step) in image.steps.enumerated()
    where step.isBackgroundFilled && step.process == paged.index {
      for range in step.ranges { ranges.append((range.address, range.end, chunk)) }
    }
    ranges.sort { $0.start < $1.start }
    var listed = ChunkSet()
    for range in ranges where listed.insert(range.chunk) { chunks.append(range.chunk) }
  }

  /// The chunks that aren't in place, sorted by address.
  var missingChunks: [Int] { chunks.filter { !done.contains($0) } }

  func dropChunks() { (chunks, ranges) = ([], []) }

  /// Applies messages of changes to the layout. Page faults aren't among them.
  func apply(_ batch: [FaultJournal.Message]) throws {
    try layout.apply(batch)
    changes += 1
  }

  var hasUnresolvedMoves: Bool { !hasVanished && layout.hasMoves }

  /// Forgets moves, whose pages must be in place.
  func forgetMoves() {
    layout.forgetMoves()
    changes += 1
  }

  /// Opens what shows the state of the pages.
  func openPages() throws(SystemCallError) {
    pages = try PageMap(pid: pid)
    showsGuardPages = pages?.showsGuardPages ?? false
  }

  /// False if the memory is known to be gone: the process executes another program, say.
  var hasMemory: Bool { pages?.hasMemory ?? true }

  /// Returns pages that the process has made guard pages (MADV_GUARD_INSTALL, Linux 6.13): the
  /// kernel sends no message. Up to Linux 6.18 a fill would replace them.
  func guardPages(in ranges: [PageRange]) throws(SystemCallError) -> [PageRange] {
    guard !layout.hasMoves, let first = ranges.first, let last = ranges.last else { return [] }
    // Nearly always this one call shows that there are none.
    let whole = PageRange(from: first.address, to: last.end)
    if whole.length <= Self.scannedAtOnce, try scanForGuardPages(whole).isEmpty { return [] }
    var all: [PageRange] = []
    for range in ranges { all += try scanForGuardPages(range) }
    return all
  }

  /// True if the process has made a page a guard page, or has no memory any more.
  func isGuardPage(_ page: UInt64) throws(SystemCallError) -> Bool {
    let range = PageRange(address: page, length: pageSize)
    return try !scanForGuardPages(range).isEmpty || hasVanished
  }

  private func scanForGuardPages(_ range: PageRange) throws(SystemCallError) -> [PageRange] {
    do throws(SystemCallError) {
      if pages == nil { try openPages() }
      guard let pages, showsGuardPages else { return [] }
      return try pages.guardPages(in: range)
    } catch {
      // It executes another program by now, or ends.
      if !error.meansVanished { throw error }
      hasVanished = true
      return []
    }
  }

  /// Counts guard pages as dropped.
  ///
  /// - Returns: false if the journal has no room for that: a later pager would bring their earlier
  ///   contents back.
  func drop(_ guards: [PageRange]) -> Bool {
    var isRecorded = true
    for one in guards {
      if journal.isHalfFull { _ = shortenJournal() }
      isRecorded = journal.recordDropped(one.address..<one.end) && isRecorded
      layout.drop(one.address..<one.end)
      changes += 1
    }
    return isRecorded
  }

  /// Writes the journal again with as few messages as possible. Returns false if it would be nearly
  /// as long, or if a change is unfinished.
  func shortenJournal() -> Bool {
    guard unfinished.isEmpty, journal.openForks == 0, let dropped = layout.droppedAlone else {
      return false
    }
    return journal.replaceAll(withDropped: dropped)
  }

  /// Returns the chunk that has a page of the image.
  func chunk(with page: UInt64) -> Int? {
    let index = ranges.partitioningIndex { $0.end > page }
    return index < ranges.count && ranges[index].start <= page ? ranges[index].chunk : nil
  }

  /// Records pages that are in place already, by their present addresses.
  func didFind(_ present: [PageRange]) {
    for page in present.lazy.flatMap(\.pages) {
      if let original = layout.original(of: page), chunk(with: original) != nil {
        filled.insert(original)
      }
    }
  }

  /// Returns the number of bytes from a page on, at most `length`, before the next page that was
  /// filled alone.
  func unfilled(from page: UInt64, _ length: UInt64) -> UInt64 {
    if filled.isEmpty || length == pageSize { return length }
    var run = pageSize
    while run < length, !filled.contains(page + run) { run += pageSize }
    return run
  }

  /// Records pages that were filled, and whose threads wait on.
  func leftAsleep(_ address: UInt64, _ length: UInt64) {
    let (start, end) = (asleep?.lowerBound ?? address, asleep?.upperBound ?? address)
    asleep = min(start, address)..<max(end, address + length)
  }

  /// Wakes the threads that wait for such pages. Others try again, and wait on.
  func wakeThreads() {
    if let range = asleep { userfault.wake(range.lowerBound, range.upperBound - range.lowerBound) }
    asleep = nil
  }

  static var cacheIsCrowded: Bool { cachedByAll.load(ordering: .relaxed) > crowded }

  /// Frees the decompressed chunks: from here on whole chunks are filled, or few single pages.
  func dropCache() {
    cache = [:]
    Self.cachedByAll.subtract(cachedBytes, ordering: .relaxed)
    cachedBytes = 0
  }

  deinit { dropCache() }

  /// Returns one page of a chunk and its offset. The chunk stays decompressed for the next page.
  func cached(
    _ chunk: Int, page: UInt64, of image: ImageReader, buffer: ChunkBuffer
  ) throws -> (UnsafeRawPointer, Int) {
    let entry = image.steps[chunk]
    let offset = entry.offset(of: page) ?? 0
    let size = Int(pageSize)
    if let pages = cache[chunk] {
      return (buffer.keep(pages[offset..<(offset + size)]), offset)
    }
    let pages = try buffer.load(entry, of: image)
    if Self.cachedByAll.load(ordering: .relaxed) < Self.cacheLimit {
      cachedBytes += entry.length
      Self.cachedByAll.add(entry.length, ordering: .relaxed)
      cache[chunk] = [UInt8](UnsafeRawBufferPointer(start: pages, count: entry.length))
    }
    return (pages + offset, offset)
  }
}
