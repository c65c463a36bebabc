import CLinux
import Glibc
import TestSupport
import Testing

@testable import Linux

/// Ranges of pages, compared with a model that handles each page alone.
struct PageRangeTests {
  private static let span: UInt64 = 200
  private static let rounds = 300

  /// Makes random page numbers that lie in clusters.
  private static func randomPages(using random: inout TestRandom) -> Set<UInt64> {
    let density = Double.random(in: 0...1, using: &random)
    var pages: Set<UInt64> = []
    var isIn = false
    for page in 0..<span {
      if Int.random(in: 0..<5, using: &random) == 0 {
        isIn = Double.random(in: 0..<1, using: &random) < density
      }
      if isIn { pages.insert(page) }
    }
    return pages
  }

  /// Makes random ranges in ascending order, without overlaps. Some touch, as ranges of two
  /// mappings do.
  private static func ranges(
    of pages: Set<UInt64>, using random: inout TestRandom
  ) -> [PageRange] {
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

  /// True if no range is empty, and none overlaps or touches the one before it.
  private static func isJoined(_ ranges: [PageRange]) -> Bool {
    !ranges.contains(where: \.isEmpty)
      && zip(ranges, ranges.dropFirst()).allSatisfy { $0.end < $1.address }
  }

  // MARK: one range

  @Test func `A range is the same bytes as a clinux_range and an iovec`() {
    #expect(PageRange.hasLayoutOfShims)
    #expect(MemoryLayout<PageRange>.size == MemoryLayout<iovec>.size)
    let ranges = [PageRange(address: 1, length: 2), PageRange(address: 3, length: 4)]
    let seen = ranges.withShimRanges { pointer, count in
      (0..<Int(count)).compactMap { index in pointer.map { [$0[index].address, $0[index].length] } }
    }
    #expect(seen == [[1, 2], [3, 4]])
    #expect([PageRange]().withShimRanges { _, count in count } == 0)
  }

  @Test func `A range that is passed to a shim isn't copied`() {
    let ranges = [PageRange(address: 1, length: 2)]
    let address = ranges.withUnsafeBufferPointer { UnsafeRawPointer($0.baseAddress) }
    #expect(ranges.withShimRanges { pointer, _ in UnsafeRawPointer(pointer) } == address)
  }

  @Test func `A range contains its first address and not its end`() {
    let range = PageRange(from: 8 * pageSize, to: 10 * pageSize)
    #expect(range.length == 2 * pageSize)
    #expect(range.contains(8 * pageSize) && range.contains(10 * pageSize - 1))
    #expect(!range.contains(8 * pageSize - 1) && !range.contains(10 * pageSize))
    #expect(Array(range.pages) == [8 * pageSize, 9 * pageSize])
    let empty = PageRange(address: 8 * pageSize, length: 0)
    #expect(!empty.contains(empty.address) && Array(empty.pages).isEmpty)
  }

  @Test func `The last page of the address space is usable without overflow`() {
    let range = PageRange(address: .max - pageSize + 1, length: pageSize - 1)
    #expect(range.contains(.max - 1) && !range.contains(.max) && !range.contains(0))
  }

  @Test func `Two ranges intersect if they have a page in common`() {
    var random = TestRandom()
    for _ in 0..<Self.rounds {
      let (one, other) = (Self.anyRange(&random), Self.anyRange(&random))
      let both = Set(one.pages).intersection(other.pages)
      #expect(one.intersects(other) == !both.isEmpty)
      #expect(other.intersects(one) == !both.isEmpty)
      #expect(one.intersection(with: other).map { Array($0.pages) } ?? [] == both.sorted())
      if !other.isEmpty {
        #expect(one.contains(other) == Set(one.pages).isSuperset(of: other.pages))
      }
    }
  }

  @Test func `The head and tail of a split range together are the range`() {
    var random = TestRandom()
    for _ in 0..<Self.rounds {
      let range = Self.anyRange(&random)
      let length = UInt64.random(in: 0...12, using: &random) * pageSize
      let (head, tail) = range.split(after: length)
      #expect(head.length == min(length, range.length))
      #expect(Array(head.pages) + Array(tail.pages) == Array(range.pages))
    }
  }

  private static func anyRange(_ random: inout TestRandom) -> PageRange {
    PageRange(
      address: UInt64.random(in: 0..<20, using: &random) * pageSize,
      length: UInt64.random(in: 0..<10, using: &random) * pageSize)
  }

  // MARK: sets

  @Test func `Split, intersection and difference equal those of the sets of pages`() {
    var random = TestRandom()
    for _ in 0..<Self.rounds {
      let (some, others) = (Self.randomPages(using: &random), Self.randomPages(using: &random))
      let ranges = Self.ranges(of: some, using: &random)
      let set = Self.ranges(of: others, using: &random)
      let (inside, outside) = ranges.split(by: set)
      #expect(Self.pages(inside) == some.intersection(others).sorted())
      #expect(Self.pages(outside) == some.subtracting(others).sorted())
      #expect(Self.isJoined(inside) && Self.isJoined(outside))
      #expect(ranges.intersection(with: set) == inside)
      #expect(ranges.subtracting(set) == outside)
      #expect(inside.bytes + outside.bytes == ranges.bytes)
    }
  }

  @Test func `A split by single pages equals the split by their set`() {
    var random = TestRandom()
    for _ in 0..<Self.rounds {
      let (some, others) = (Self.randomPages(using: &random), Self.randomPages(using: &random))
      let ranges = Self.ranges(of: some, using: &random)
      let (inside, outside) = ranges.split(byPages: Set(others.map { $0 * pageSize }))
      #expect(Self.pages(inside) == some.intersection(others).sorted())
      #expect(Self.pages(outside) == some.subtracting(others).sorted())
      #expect(Self.isJoined(inside) && (others.isEmpty || Self.isJoined(outside)))
    }
  }

  @Test func `The union of ranges in any order has each page once`() {
    var random = TestRandom()
    for _ in 0..<Self.rounds {
      let ranges = (0..<Int.random(in: 0..<12, using: &random)).map { _ in Self.anyRange(&random) }
      let union = ranges.union()
      #expect(Self.pages(union) == Set(Self.pages(ranges)).sorted())
      #expect(Self.isJoined(union))
      #expect(union.union() == union)
      #expect(Set([union]) == [ranges.shuffled(using: &random).union()])
    }
  }

  @Test func `Batches have the same pages in order, and none is over the limits of a call`() {
    var random = TestRandom()
    for _ in 0..<Self.rounds {
      let ranges = Self.ranges(of: Self.randomPages(using: &random), using: &random)
      let (count, maxBytes) = (
        Int.random(in: 1...4, using: &random), pageSize * UInt64.random(in: 1...5, using: &random)
      )
      let batches = ranges.batches(of: count, bytes: maxBytes)
      #expect(Self.pages(batches.flatMap { $0 }) == Self.pages(ranges))
      #expect(batches.allSatisfy { (1...count).contains($0.count) && $0.bytes <= maxBytes })
      #expect(batches.allSatisfy { $0.allSatisfy { !$0.isEmpty } })
    }
    let huge = PageRange(address: 0, length: 5 << 30)
    let parts = [huge].batches(of: Injector.rangesPerCall, bytes: Injector.bytesPerCall)
    #expect(parts.map(\.bytes) == Array(repeating: 1 << 30, count: 5))
  }

  @Test func `An empty set split by any set is empty`() {
    let range = PageRange(address: 0, length: pageSize)
    #expect([PageRange]().split(by: [range]) == ([], []))
    #expect([range].split(by: []) == ([], [range]))
    #expect([PageRange]().union().isEmpty && [PageRange(address: 8, length: 0)].union().isEmpty)
  }
}
