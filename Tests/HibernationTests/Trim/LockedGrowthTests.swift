import Testing

@testable import Hibernation
@testable import Linux

/// Locked memory that a thread makes longer while its pages are missing.
struct LockedGrowthTests {
  /// Sixteen pages from 0x100000 on.
  private let mapping: MemoryMapping
  private let end: PageRange
  private let before = 4 * pageSize

  init() {
    let start: UInt64 = 0x100000
    var mapping = MemoryMapping(start: start, end: start + 16 * pageSize)
    mapping.flags = [.locked, .userfault]
    self.mapping = mapping
    end = PageRange(address: start + 8 * pageSize, length: 4 * pageSize)
  }

  @Test("A page of the image in a large locked mapping isn't taken for what another thread adds")
  func imagePage() {
    for page in end.pages {
      #expect(!mapping.mayHaveGrown(by: end, from: before) { $0 != page }, "\(page)")
    }
    #expect(mapping.mayHaveGrown(by: end, from: before) { end.contains($0) })
  }

  @Test("A block that was moved to where the image had memory may have grown there")
  func movedOver() {
    var block = mapping
    block.start = end.address - before
    #expect(block.mayHaveGrown(by: end, from: before) { _ in false })
  }

  @Test("Memory that isn't locked, or is shorter than the new block, hasn't grown")
  func otherMemory() {
    var other = mapping
    other.flags = .userfault
    #expect(!other.mayHaveGrown(by: end, from: before) { _ in true })
    other = mapping
    other.end = end.end - pageSize
    #expect(!other.mayHaveGrown(by: end, from: before) { _ in true })
    other = mapping
    other.start = end.address - pageSize
    #expect(!other.mayHaveGrown(by: end, from: before) { _ in true })
  }
}
