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
      }
    }
    let limit =
      subjects.reduce(0) { $0 + $1.plan.bytes } / Base.greatestChange
    if Self.bytes(changed) > limit { return nil }
    compared = doubts.reduce(0) { $0 + $1.part.ranges.bytes }
    let verdicts = try Comparison(
      items: doubts, base: base, memories: subjects.map(\.memory), access: access
    ).run(lanes: lanes)
    for (item, verdict) in zip(doubts, verdicts) {
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
  }
  struct Verdict: Sendable {
    var equal: [PageRange] = []
    var different: [PageRange] = []
  }

  let items: [Item]
  let base: ImageReader
  /// By the parts' process index.
  let memories: [ProcessMemory]
  var access = ForcedAccess.anyThread

  /// A verdict for each item. The calling thread must trace the processes.
  func run(lanes: Int) throws -> [Verdict] {
    let verdicts = Verdicts(count: items.count)
    let (shared, own) = access.split(Array(items.indices)) { items[$0].kind.readable }
    try run(shared, lanes: lanes, verdicts)
    try run(own, lanes: 1, verdicts)
    return verdicts.all
  }

  private func run(_ indices: [Int], lanes: Int, _ verdicts: Verdicts) throws {
    let failure = FirstFailure()
    inParallel(count: indices.count, lanes: lanes) { next in
      failure.record {
        let lane = try Lane()
        while let number = next(), !failure.hasFailed {
          let index = indices[number]
          verdicts.set(index, try lane.compare(self.items[index], self))
        }
      }
    }
    try failure.rethrow()
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

    func compare(_ item: Item, _ work: Comparison) throws -> Verdict {
      var verdict = Verdict()
      let part = item.part
      let chunk = work.base.chunks[Int(part.chunk)]
      let step = RestoreStep(
        isOfBase: false, chunk: chunk, process: Int(part.process), ranges: part.ranges,
        offsets: chunk.offsets(of: part.ranges) ?? [], isInNextBase: true)
      try work.base.load(step, stored: stored, into: then, with: decompressor)
      guard let now = now.baseAddress, let then = then.baseAddress else { return verdict }
      try work.memories[Int(part.process)].read(
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
