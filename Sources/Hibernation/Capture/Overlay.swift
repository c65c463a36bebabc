import Glibc
import Linux

/// The content of an image that has a base: the pages that changed, and a reference to the others.
struct Overlay: Sendable {
  let base: ImageReader
  let reference: BaseReference
  /// The changed pages.
  let chunks: [PagePlan.PlannedChunk]
  /// Bytes that were compared because it wasn't known whether they had been written to.
  let compared: UInt64

  /// A stopped process, and what is known about its pages.
  struct Subject: Sendable {
    let identity: ProcessIdentity
    let plan: PagePlan
    let memory: ProcessMemory
    var knowledge = WriteKnowledge()
  }

  private typealias Share = (process: Int, kind: PagePlan.Kind, ranges: [PageRange])

  /// Divides the pages of stopped processes into those that the base supplies and those to write.
  ///
  /// - Parameter inherited: pages of each process that aren't in memory, and that the base
  ///   supplies; `nil` if the processes aren't trimmed.
  /// - Returns: `nil` if more than 1 / `Base.maxChangeDivisor` of the bytes have changed. It isn't
  ///   for trimmed processes.
  init?(
    of subjects: [Subject], over base: ImageReader, inheriting inherited: [[PageRange]]? = nil,
    lanes: Int, access: ForcedAccess = .anyThread
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
        // Pages of files can't be tracked; see `WriteTracker`.
        var knowledge = subject.knowledge
        if !kind.absentIsZero { knowledge.tracked = [] }
        // A chunk of the base that is filled late doesn't supply what the worker needs first.
        let supplied =
          subject.plan.isForLazyRestore && !kind.isBackgroundFilled
          ? pages[index].present : pages[index].ranges
        let division = PageDivision(of: ranges, base: supplied, knowing: knowledge)
        changed.append((index, kind, division.changed))
        kept[index, default: []] += division.kept
        doubts += pages[index].segments(of: division.doubtful, process: UInt32(index)).map {
          Comparison.Item(kind: kind, segment: $0)
        }
        for segment in pages[index].segments(of: division.written, process: UInt32(index)) {
          let item = Comparison.Item(kind: kind, segment: segment)
          if item.isWorthItsChunk(of: base) {
            rewrites.append(item)
          } else {
            changed.append((index, kind, segment.ranges))
          }
        }
      }
    }
    for (index, ranges) in (inherited ?? []).enumerated() { kept[index, default: []] += ranges }
    let limit = inherited == nil ? Self.limit(of: subjects) : .max
    let memories = subjects.map(\.memory)
    guard try Self.fits(&changed, limit: limit, in: memories) else { return nil }
    var comparison = Comparison(base: base, memories: memories, access: access)
    let skipped = try comparison.run(doubts: doubts, rewrites: rewrites, lanes: lanes)
    changed += skipped.map { (Int($0.segment.process), $0.kind, $0.segment.ranges) }
    compared = comparison.compared
    for (item, verdict) in comparison.verdicts {
      let process = Int(item.segment.process)
      kept[process, default: []] += verdict.equal
      changed.append((process, item.kind, verdict.different))
    }
    guard Self.bytes(changed) <= limit, let id = base.id else { return nil }
    self.base = base
    chunks = Self.chunks(of: changed)
    reference = BaseReference(
      id: id, indexChecksum: base.indexChecksum, fileLength: base.fileLength,
      segments: SegmentList(
        kept.sorted { $0.key < $1.key }.flatMap { index, ranges in
          pages[index].segments(of: ranges.union(), process: UInt32(index))
        }))
  }

  private static func limit(of subjects: [Subject]) -> UInt64 {
    subjects.reduce(0) { $0 + $1.plan.bytes } / Base.maxChangeDivisor
  }

  /// True if the changed pages are at most `limit` bytes, if need be without pages of zeros.
  private static func fits(
    _ changed: inout [Share], limit: UInt64, in memories: [ProcessMemory]
  ) throws -> Bool {
    if bytes(changed) <= limit { return true }
    changed = try changed.map { try withoutZeros($0, in: memories) }
    return bytes(changed) <= limit
  }

  /// Removes pages of zeros, which needn't be written. A resume that writes to one page of a huge
  /// page brings the others with it (32 MB if pages have 16 KiB, on arm64), and the base has none
  /// of them.
  private static func withoutZeros(
    _ share: Share, in memories: [ProcessMemory]
  ) throws -> Share {
    guard share.kind.absentIsZero, !share.kind.isPrefetched, share.kind.readable else {
      return share
    }
    let chunks = PagePlan.chunks(
      of: share.ranges, kind: share.kind, process: share.process, limit: ImageLayout.chunkLength)
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ImageLayout.chunkLength, alignment: Int(pageSize))
    defer { buffer.deallocate() }
    guard let base = buffer.baseAddress, try hasZeros(chunks, in: memories, base) else {
      return share
    }
    var kept: [PageRange] = []
    for chunk in chunks {
      try memories[chunk.process].read(chunk.ranges, into: base, direct: true)
      var offset = 0
      for page in chunk.ranges.lazy.flatMap(\.pages) {
        let one = UnsafeRawBufferPointer(rebasing: buffer[offset..<offset + Int(pageSize)])
        if !one.isZero { kept.appendBehind(PageRange(address: page, length: pageSize)) }
        offset += Int(pageSize)
      }
    }
    return (share.process, share.kind, kept)
  }

  /// Whether it is worth reading all of the chunks. It reads the middle page of some of them,
  /// evenly distributed.
  private static func hasZeros(
    _ chunks: [PagePlan.PlannedChunk], in memories: [ProcessMemory],
    _ buffer: UnsafeMutableRawPointer
  ) throws -> Bool {
    for index in stride(from: 0, to: chunks.count, by: max(1, chunks.count / samples)) {
      let pages = chunks[index].ranges.flatMap(\.pages)
      let page = PageRange(address: pages[pages.count / 2], length: pageSize)
      try memories[chunks[index].process].read([page], into: buffer, direct: true)
      if UnsafeRawBufferPointer(start: buffer, count: Int(pageSize)).isZero { return true }
    }
    return false
  }

  private static let samples = 16

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

extension UnsafeRawBufferPointer {
  /// True if all bytes are 0. The buffer must have more than eight bytes.
  var isZero: Bool {
    guard let base = baseAddress else { return true }
    return loadUnaligned(as: UInt64.self) == 0 && memcmp(base, base + 8, count - 8) == 0
  }
}
