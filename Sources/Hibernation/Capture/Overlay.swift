import Glibc
import Linux
import Synchronization

/// What a hibernation writes if a base has the rest.
struct Overlay: Sendable {
  let base: ImageReader
  let reference: BaseReference
  /// The changed pages.
  let chunks: [PagePlan.PlannedChunk]
  /// Bytes that were compared because it wasn't known whether they had been written to.
  let compared: UInt64

  /// A stopped process.
  struct Subject: Sendable {
    let identity: ProcessIdentity
    let plan: PagePlan
    let memory: ProcessMemory
    var knowledge = WriteKnowledge()
  }

  private typealias Share = (process: Int, kind: PagePlan.Kind, ranges: [PageRange])

  /// - Returns: `nil` if so much has changed that an overlay isn't worth its cost.
  init?(
    of subjects: [Subject], over base: ImageReader, lanes: Int,
    access: ForcedAccess = .anyThread
  ) throws {
    var changed: [Share] = []
    var kept: [Int: [PageRange]] = [:]
    var doubts: [Comparison.Item] = []
    var rewrites: [Comparison.Item] = []
    let pages = subjects.map { subject in
      let process = base.processes.firstIndex { $0.identity == subject.identity }
      return BasePages(chunks: base.chunks, process: process ?? -1)
    }
    for (index, subject) in subjects.enumerated() {
      for (kind, ranges) in subject.plan.byKind {
        // Files' pages can't be tracked; see `WriteTracker`.
        var knowledge = subject.knowledge
        if !kind.absentIsZero { knowledge.tracked = [] }
        // What the worker needs first isn't taken from a chunk of the base that is filled while it runs.
        let supplied =
          subject.plan.isForLazyRestore && !kind.isBackgroundFilled
          ? pages[index].present : pages[index].ranges
        let division = PageDivision(of: ranges, base: supplied, knowing: knowledge)
        changed.append((index, kind, division.changed))
        kept[index, default: []] += division.kept
        doubts += pages[index].parts(of: division.doubtful, process: UInt32(index)).map {
          Comparison.Item(kind: kind, part: $0)
        }
        for part in pages[index].parts(of: division.written, process: UInt32(index)) {
          let item = Comparison.Item(kind: kind, part: part)
          if item.isWorthItsChunk(of: base) {
            rewrites.append(item)
          } else {
            changed.append((index, kind, part.ranges))
          }
        }
      }
    }
    let limit =
      subjects.reduce(0) { $0 + $1.plan.bytes } / Base.greatestChange
    if Self.bytes(changed) > limit { return nil }
    var comparison = Comparison(base: base, memories: subjects.map(\.memory), access: access)
    let (samples, others) = Comparison.sample(rewrites)
    try comparison.run(doubts + samples, lanes: lanes)
    if samples.isEmpty || comparison.mostlyEqual(samples.count) {
      try comparison.run(others, lanes: lanes)
    } else {
      for item in others { changed.append((Int(item.part.process), item.kind, item.part.ranges)) }
    }
    compared = comparison.compared
    for (item, verdict) in comparison.verdicts {
      let process = Int(item.part.process)
      kept[process, default: []] += verdict.equal
      changed.append((process, item.kind, verdict.different))
    }
    if Self.bytes(changed) > limit { return nil }
    guard let id = base.id else { return nil }

    self.base = base
    chunks = Self.chunks(of: changed)
    reference = BaseReference(
      id: id, indexChecksum: base.indexChecksum, fileLength: base.fileLength,
      parts: kept.sorted { $0.key < $1.key }.flatMap { index, ranges in
        pages[index].parts(of: ranges.union(), process: UInt32(index))
      })
  }

  private static func bytes(_ shares: [Share]) -> UInt64 {
    shares.reduce(0) { $0 + $1.ranges.bytes }
  }

  private static func chunks(of shares: [Share]) -> [PagePlan.PlannedChunk] {
    struct Key: Hashable {
      let process: Int
      let kind: PagePlan.Kind
    }
    var together: [Key: [PageRange]] = [:]
    var order: [Key] = []
    for share in shares where !share.ranges.isEmpty {
      let key = Key(process: share.process, kind: share.kind)
      if together[key] == nil { order.append(key) }
      together[key, default: []] += share.ranges
    }
    return order.flatMap { key in
      PagePlan.chunks(
        of: (together[key] ?? []).union(), kind: key.kind, process: key.process,
        limit: ImageLayout.overlayChunkLength)
    }
  }
}

/// Compares pages in memory with a base's, byte for byte: a checksum would only make it likely that
/// they are the same.
struct Comparison: Sendable {
  struct Item: Sendable {
    let kind: PagePlan.Kind
    let part: BasePart

    /// A quarter of the base's chunk or more is compared, which has to be decompressed as a whole.
    func isWorthItsChunk(of base: ImageReader) -> Bool {
      part.ranges.bytes * 4 >= UInt64(base.chunks[Int(part.chunk)].length)
    }
  }
  struct Verdict: Sendable {
    var equal: [PageRange] = []
    var different: [PageRange] = []
  }

  let base: ImageReader
  /// By the parts' process index.
  let memories: [ProcessMemory]
  var access = ForcedAccess.anyThread
  /// Of what was compared.
  private(set) var verdicts: [(item: Item, verdict: Verdict)] = []

  init(base: ImageReader, memories: [ProcessMemory], access: ForcedAccess) {
    (self.base, self.memories, self.access) = (base, memories, access)
  }

  /// Bytes.
  var compared: UInt64 { verdicts.reduce(0) { $0 + $1.item.part.ranges.bytes } }

  /// Compares more. The calling thread must trace the processes.
  mutating func run(_ items: [Item], lanes: Int) throws {
    let found = Verdicts(count: items.count)
    let (shared, own) = access.split(Array(items.indices)) { items[$0].kind.readable }
    try run(items, shared, lanes: lanes, found)
    try run(items, own, lanes: 1, found)
    verdicts += zip(items, found.all).map { ($0, $1) }
  }

  private func run(_ items: [Item], _ indices: [Int], lanes: Int, _ verdicts: Verdicts) throws {
    let failure = FirstFailure()
    inParallel(count: indices.count, lanes: lanes) { [base, memories] next in
      failure.record {
        let lane = try Lane()
        while let number = next(), !failure.hasFailed {
          let index = indices[number]
          verdicts.set(index, try lane.compare(items[index], base, memories))
        }
      }
    }
    try failure.rethrow()
  }

  // MARK: pages that were written to

  /// To compare a chunk costs its decompression, a fifth of the time that its compression takes. Of a program that really changes its
  /// memory, only these few are compared.
  private static let sampled = 8

  /// A few items from all of it, and the others.
  static func sample(_ items: [Item]) -> (samples: [Item], others: [Item]) {
    let step = max(1, items.count / sampled)
    var (samples, others): ([Item], [Item]) = ([], [])
    for (index, item) in items.enumerated() {
      if index % step == 0 { samples.append(item) } else { others.append(item) }
    }
    return (samples, others)
  }

  /// At least half of the pages of the last `count` items are as in the base.
  func mostlyEqual(_ count: Int) -> Bool {
    let last = verdicts.suffix(count)
    let equal = last.reduce(0) { $0 + $1.verdict.equal.bytes }
    return equal * 2 >= last.reduce(0) { $0 + $1.item.part.ranges.bytes }
  }

  private final class Verdicts: Sendable {
    private let verdicts: Mutex<[Verdict]>
    init(count: Int) { verdicts = Mutex(Array(repeating: Verdict(), count: count)) }
    func set(_ index: Int, _ verdict: Verdict) { verdicts.withLock { $0[index] = verdict } }
    var all: [Verdict] { verdicts.withLock { $0 } }
  }

  private final class Lane {
    let decompressor: ChunkDecompressor
    let then = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ImageLayout.chunkLength, alignment: Int(pageSize))
    let now = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ImageLayout.chunkLength, alignment: Int(pageSize))
    let stored = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ChunkCompressor.bound(ImageLayout.chunkLength), alignment: 64)

    init() throws(ZstdError) { decompressor = try ChunkDecompressor() }

    deinit {
      then.deallocate()
      now.deallocate()
      stored.deallocate()
    }

    func compare(
      _ item: Item, _ base: ImageReader, _ memories: [ProcessMemory]
    ) throws -> Verdict {
      var verdict = Verdict()
      let part = item.part
      let chunk = base.chunks[Int(part.chunk)]
      let step = RestoreStep(
        isOfBase: false, chunk: chunk, process: Int(part.process), ranges: part.ranges,
        offsets: chunk.offsets(of: part.ranges) ?? [], isInNextBase: true)
      try base.load(step, stored: stored, into: then, with: decompressor)
      guard let now = now.baseAddress, let then = then.baseAddress else { return verdict }
      try memories[Int(part.process)].read(
        part.ranges, into: now, direct: item.kind.readable)
      var offset = 0
      let size = Int(pageSize)
      for range in part.ranges {
        for page in range.pages {
          let one = PageRange(address: page, length: pageSize)
          if memcmp(now + offset, then + offset, size) == 0 {
            verdict.equal.appendBehind(one)
          } else {
            verdict.different.appendBehind(one)
          }
          offset += size
        }
      }
      return verdict
    }
  }
}
