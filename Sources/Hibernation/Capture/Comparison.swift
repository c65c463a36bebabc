import Glibc
import Linux
import Synchronization

/// Compares pages in memory with a base's, byte for byte: equal checksums would only make it likely
/// that they are equal.
struct Comparison: Sendable {
  struct Item: Sendable {
    let kind: PagePlan.Kind
    let segment: BaseSegment

    /// True if at least half of the base's chunk is compared. The chunk has to be decompressed as a
    /// whole, which takes zstd 0.43 of the time in which it compresses as many bytes
    /// (Benchmarks/results/2026-11-26-peers.md).
    func isWorthItsChunk(of base: ImageReader) -> Bool {
      segment.ranges.bytes * 2 >= UInt64(base.chunks[Int(segment.chunk)].length)
    }
  }
  struct Verdict: Sendable {
    var equal: [PageRange] = []
    var different: [PageRange] = []
  }

  let base: ImageReader
  /// The memory of each process, by the segments' process index.
  let memories: [ProcessMemory]
  var access = ForcedAccess.anyThread
  /// The results, one for each item that was compared.
  private(set) var verdicts: [(item: Item, verdict: Verdict)] = []

  init(base: ImageReader, memories: [ProcessMemory], access: ForcedAccess) {
    (self.base, self.memories, self.access) = (base, memories, access)
  }

  /// The number of bytes that were compared.
  var compared: UInt64 { verdicts.reduce(0) { $0 + $1.item.segment.ranges.bytes } }

  /// Compares pages with the base. The calling thread must trace the processes.
  ///
  /// - Parameters:
  ///   - doubts: pages of which it isn't known whether they were written to.
  ///   - rewrites: pages that were written to.
  /// - Returns: the rewrites that weren't compared, because less than half of a sample were equal.
  mutating func run(doubts: [Item], rewrites: [Item], lanes: Int) throws -> [Item] {
    let (samples, others) = Self.sample(rewrites)
    try run(doubts + samples, lanes: lanes)
    guard samples.isEmpty || mostlyEqual(samples.count) else { return others }
    try run(others, lanes: lanes)
    return []
  }

  private mutating func run(_ items: [Item], lanes: Int) throws {
    let results = Verdicts(count: items.count)
    let (shared, tracerOnly) = access.split(Array(items.indices)) { items[$0].kind.readable }
    try run(items, at: shared, lanes: lanes, into: results)
    try run(items, at: tracerOnly, lanes: 1, into: results)
    verdicts += zip(items, results.all).map { ($0, $1) }
  }

  private func run(
    _ items: [Item], at indices: [Int], lanes: Int, into verdicts: Verdicts
  ) throws {
    let failure = FirstFailure()
    inParallel(count: indices.count, lanes: lanes) { [base, memories] next in
      failure.record {
        let lane = Lane()
        while let number = next(), !failure.hasFailed {
          let index = indices[number]
          verdicts.set(index, try lane.compare(items[index], with: base, memories: memories))
        }
      }
    }
    try failure.rethrow()
  }

  // MARK: pages that were written to

  /// The number of items in a sample. To compare pages that were written to pays only if about half
  /// of them are equal. If a program really changes its memory, only these few are compared.
  private static let sampled = 8

  /// Divides the items into an evenly distributed sample and the others.
  private static func sample(_ items: [Item]) -> (samples: [Item], others: [Item]) {
    let step = max(1, items.count / sampled)
    var (samples, others): ([Item], [Item]) = ([], [])
    for (index, item) in items.enumerated() {
      if index % step == 0 { samples.append(item) } else { others.append(item) }
    }
    return (samples, others)
  }

  /// True if at least half of the bytes of the last `count` items are as in the base.
  private func mostlyEqual(_ count: Int) -> Bool {
    let last = verdicts.suffix(count)
    let equal = last.reduce(0) { $0 + $1.verdict.equal.bytes }
    return equal * 2 >= last.reduce(0) { $0 + $1.item.segment.ranges.bytes }
  }

  private final class Verdicts: Sendable {
    private let verdicts: Mutex<[Verdict]>
    init(count: Int) { verdicts = Mutex(Array(repeating: Verdict(), count: count)) }
    func set(_ index: Int, _ verdict: Verdict) { verdicts.withLock { $0[index] = verdict } }
    var all: [Verdict] { verdicts.withLock { $0 } }
  }

  private final class Lane {
    let buffer = ChunkBuffer()
    let memoryContent = UnsafeMutableRawPointer.allocate(
      byteCount: ImageLayout.chunkLength, alignment: Int(pageSize))

    deinit { memoryContent.deallocate() }

    func compare(
      _ item: Item, with base: ImageReader, memories: [ProcessMemory]
    ) throws -> Verdict {
      var verdict = Verdict()
      let segment = item.segment
      let chunk = base.chunks[Int(segment.chunk)]
      let step = RestoreStep(
        isOfBase: false, chunk: chunk, process: Int(segment.process), ranges: segment.ranges,
        isInNextBase: true)
      let baseContent = try buffer.load(step, of: base)
      try memories[Int(segment.process)].read(
        segment.ranges, into: memoryContent, direct: item.kind.readable)
      var offset = 0
      let size = Int(pageSize)
      for range in segment.ranges {
        for page in range.pages {
          let one = PageRange(address: page, length: pageSize)
          if memcmp(memoryContent + offset, baseContent + offset, size) == 0 {
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
