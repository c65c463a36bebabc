import TestSupport
import Testing

@testable import Hibernation

struct DroppedPagesTests {
  @Test func `Dropped ranges are joined, whatever their order, and each address has one answer`() {
    var random = TestRandom()
    for _ in 0..<200 {
      var pages = DroppedPages()
      var expected: Set<UInt64> = []
      for _ in 0..<20 {
        let start = UInt64.random(in: 0..<60, using: &random)
        let range = start..<(start + UInt64.random(in: 0..<8, using: &random))
        pages.insert(range)
        expected.formUnion(range)
      }
      #expect((0..<80).filter { pages.contains($0) } == expected.sorted())
      for (one, next) in zip(pages.ranges, pages.ranges.dropFirst()) {
        #expect(one.upperBound < next.lowerBound)
      }
      for address in UInt64(0)..<80 {
        #expect(
          pages.first(endingAfter: address)
            == pages.ranges.first { $0.upperBound > address })
      }
    }
  }

  @Test("Moves whose pages are in place leave nothing of the image at the addresses they touched")
  func movesForgotten() throws {
    var layout = PageLayout()
    try layout.apply([message(0x10000, 0x12000)])
    var move = FaultJournal.Message()
    move.event = 0x14  // UFFD_EVENT_REMAP
    (move.a, move.b, move.c) = (0x20000, 0x40000, 0x4000)
    try layout.apply([move])
    #expect(layout.hasMoves && layout.droppedAlone == nil)
    try layout.apply([message(0x41000, 0x42000)])
    #expect(layout.original(of: 0x40000) == 0x20000)
    layout.forgetMoves()
    #expect(
      layout.droppedAlone == [0x10000..<0x12000, 0x20000..<0x24000, 0x40000..<0x44000])
    #expect(layout.original(of: 0x40000) == nil && layout.currentAddress(of: 0x20000) == nil)
    #expect(layout.original(of: 0x30000) == 0x30000)
  }

  private func message(_ start: UInt64, _ end: UInt64) -> FaultJournal.Message {
    var message = FaultJournal.Message()
    message.event = 0x16  // UFFD_EVENT_UNMAP
    (message.a, message.b) = (start, end)
    return message
  }
}
