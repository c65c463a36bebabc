import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The source of each page, compared with a model that handles each page alone.
struct PageDivisionTests {
  private static let span: UInt64 = 400

  private static func randomSet(
    _ density: Double, using random: inout TestRandom
  ) -> (pages: Set<UInt64>, ranges: [PageRange]) {
    var pages: Set<UInt64> = []
    var isIn = false
    for page in 0..<span {
      if Double.random(in: 0..<1, using: &random) < 0.2 {
        isIn = Double.random(in: 0..<1, using: &random) < density
      }
      if isIn { pages.insert(page) }
    }
    return (pages, ranges(of: pages, using: &random))
  }

  /// Makes runs, some of which touch, as runs of two mappings do.
  private static func ranges(of pages: Set<UInt64>, using random: inout TestRandom)
    -> [PageRange]
  {
    var ranges: [PageRange] = []
    for page in pages.sorted() {
      let range = PageRange(address: page * pageSize, length: pageSize)
      if Int.random(in: 0..<8, using: &random) > 0 {
        ranges.appendBehind(range)
      } else {
        ranges.append(range)
      }
    }
    return ranges
  }

  private static func pages(_ ranges: [PageRange]) -> [UInt64] {
    ranges.flatMap { Array($0.pages) }.map { $0 / pageSize }
  }

  @Test(arguments: 0..<UInt64(300))
  func `A page is kept only with proof, and every page is in exactly one part`(seed: UInt64) {
    var random = TestRandom(seed: seed)
    let moving = Self.randomSet(0.7, using: &random)
    let base = Self.randomSet(0.7, using: &random)
    let tracked = Self.randomSet(0.6, using: &random)
    let unwritten = Self.randomSet(0.7, using: &random)
    let current = Self.randomSet(0.7, using: &random)
    let division = PageDivision(
      of: moving.ranges, base: base.ranges,
      knowing: WriteKnowledge(
        tracked: tracked.ranges, unwritten: unwritten.ranges, current: current.ranges))
    let expectedKept = moving.pages.filter {
      base.pages.contains($0) && tracked.pages.contains($0) && unwritten.pages.contains($0)
        && current.pages.contains($0)
    }
    let expectedDoubtful = moving.pages.filter {
      base.pages.contains($0) && !tracked.pages.contains($0)
    }
    let expectedWritten = moving.pages.filter {
      base.pages.contains($0) && tracked.pages.contains($0)
        && !(unwritten.pages.contains($0) && current.pages.contains($0))
    }
    #expect(Self.pages(division.kept) == expectedKept.sorted())
    #expect(Self.pages(division.written) == expectedWritten.sorted())
    #expect(Self.pages(division.doubtful) == expectedDoubtful.sorted())
    let parking = moving.pages.subtracting(expectedKept).subtracting(expectedDoubtful)
      .subtracting(expectedWritten)
    #expect(Self.pages(division.changed) == parking.sorted())
  }

  @Test("The base's chunks are found for any of its pages", arguments: 0..<UInt64(200))
  func segments(seed: UInt64) throws {
    var random = TestRandom(seed: seed)
    let base = Self.randomSet(0.7, using: &random)
    var chunks: [ImageChunk] = []
    for range in base.ranges {
      if chunks.isEmpty || Bool.random(using: &random) {
        chunks.append(
          ImageChunk(process: 0, writable: true, offset: 64, storedLength: 1, ranges: []))
      }
      chunks[chunks.count - 1].ranges.append(range)
    }
    // The chunks come in any order, as lanes finish.
    chunks.shuffle(using: &random)
    let wanted = base.pages.filter { _ in Bool.random(using: &random) }
    let segments = BasePages(chunks: chunks, process: 0).segments(
      of: Self.ranges(of: wanted, using: &random), process: 3)
    #expect(segments.flatMap { Self.pages($0.ranges) }.sorted() == wanted.sorted())
    for segment in segments {
      #expect(segment.process == 3)
      let chunk = chunks[Int(segment.chunk)]
      let offsets = try #require(chunk.offsets(of: segment.ranges))
      let all = Self.pages(chunk.ranges)
      for (range, offset) in zip(segment.ranges, offsets) {
        #expect(all[offset / Int(pageSize)] == range.address / pageSize)
      }
    }
  }

  @Test func `Pages that a chunk doesn't have aren't found in it`() {
    func range(_ page: UInt64, _ count: UInt64) -> PageRange {
      PageRange(address: page * pageSize, length: count * pageSize)
    }
    let chunk = ImageChunk(
      process: 0, writable: true, offset: 64, storedLength: 1, ranges: [range(4, 4), range(12, 2)])
    #expect(chunk.offsets(of: [range(5, 2), range(13, 1)]) == [Int(pageSize), 5 * Int(pageSize)])
    let overflowing = PageRange(address: 12 * pageSize, length: .max - pageSize + 1)
    let odd = PageRange(address: 4 * pageSize + 8, length: pageSize)
    let wrong: [[PageRange]] = [
      [range(3, 1)], [range(7, 2)], [range(8, 1)], [range(12, 3)], [range(5, 2), range(6, 1)],
      [range(13, 1), range(5, 1)], [range(4, 0)], [overflowing], [odd],
    ]
    for ranges in wrong { #expect(chunk.offsets(of: ranges) == nil) }
  }
}
