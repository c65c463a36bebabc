import CLinux
import Glibc
import TestSupport
import Testing

@testable import Linux

/// The pages of this process that aren't empty.
@Suite(.enabled(if: clinux_try_tracking() == 1, "this kernel can't track writes"))
struct PopulatedPagesTests {
  private static let size = Int(pageSize)
  /// The number of pages of one range.
  private static let pages = 24
  private static let ranges = 40

  private let map: PageMap

  init() throws { map = try PageMap(pid: getpid()) }

  /// Makes ranges with gaps between them. The gaps contain full mappings that aren't registered.
  private func withRanges(_ body: (UnsafeMutableRawPointer, [PageRange]) throws -> Void) throws {
    let stride = 3 * Self.pages * Self.size
    let length = Self.ranges * stride
    let area = try #require(mmap(nil, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    defer { munmap(area, length) }
    var ranges: [PageRange] = []
    for index in 0..<Self.ranges {
      let address = area + index * stride
      let end = address + 2 * Self.pages * Self.size
      for (start, pages) in [(address, Self.pages), (end, Self.pages / 2)] {
        #expect(mprotect(start, pages * Self.size, PROT_READ | PROT_WRITE) == 0)
        #expect(madvise(start, pages * Self.size, MADV_NOHUGEPAGE) == 0)
      }
      memset(end, 1, Self.pages / 2 * Self.size)
      ranges.append(
        PageRange(
          address: UInt64(UInt(bitPattern: address)), length: UInt64(Self.pages * Self.size)))
    }
    try body(area, ranges)
  }

  /// Writes to some pages and reads others, so that those have the page of zeros. Returns the
  /// accessed pages.
  private func touch(_ ranges: [PageRange]) throws -> Set<UInt64> {
    var random = TestRandom()
    var touched: Set<UInt64> = []
    for page in ranges.flatMap(\.pages) where Int.random(in: 0..<5, using: &random) == 0 {
      let byte = try #require(UnsafeMutablePointer<UInt8>(bitPattern: UInt(page)))
      if Bool.random(using: &random) { byte.pointee = 1 } else { _ = strnlen(byte, 1) }
      touched.insert(page)
    }
    return touched
  }

  @Test(
    "One scan of many registered ranges finds their pages, and none of the mappings between them")
  func findsRegistered() throws {
    let descriptor = Descriptor(owning: try shim("userfaultfd") { clinux_track_open() })
    let tracker = try WriteTracker(pid: getpid(), descriptor: descriptor)
    try withRanges { _, ranges in
      for range in ranges { try tracker.register(range) }
      #expect(try map.populatedPages(inRegistered: ranges).isEmpty)
      let touched = try touch(ranges)
      let populated = try map.populatedPages(inRegistered: ranges.shuffled())
      #expect(Set(populated.flatMap(\.pages)) == touched)
      #expect(
        populated == (try ranges.flatMap { try map.populatedPages(from: $0.address, to: $0.end) }))
    }
  }

  @Test func `A registered mapping that wasn't requested isn't in the result`() throws {
    let descriptor = Descriptor(owning: try shim("userfaultfd") { clinux_track_open() })
    let tracker = try WriteTracker(pid: getpid(), descriptor: descriptor)
    try withRanges { _, ranges in
      for range in ranges { try tracker.register(range) }
      let touched = try touch(ranges)
      let asked = ranges.enumerated().filter { $0.offset % 3 == 0 }.map(\.element)
      let populated = Set(try map.populatedPages(inRegistered: asked).flatMap(\.pages))
      #expect(populated == touched.filter { page in asked.contains { $0.contains(page) } })
    }
  }

  @Test(
    "Ranges whose writes aren't recorded are looked at one by one, with the same result",
    arguments: [true, false])
  func findsUnregistered(useScan: Bool) throws {
    let map = try PageMap(pid: getpid(), useScan: useScan)
    try withRanges { _, ranges in
      let touched = try touch(ranges)
      let populated = Set(try map.populatedPages(inRegistered: ranges).flatMap(\.pages))
      // Without a scan, the kernel's list doesn't show pages of zeros.
      #expect(useScan ? populated == touched : populated.isSubset(of: touched))
    }
  }
}
