import Testing

@testable import Hibernation

struct SequentialUseTests {
  private func isSeen(_ pages: [UInt64], each step: Int64 = 100_000) -> Bool {
    var use = SequentialUse()
    for (index, page) in pages.enumerated() { use.add(page, at: Int64(index) * step) }
    return use.isSeen
  }

  @Test("Chunks in order, upwards, downwards or in several streams, are sequential use")
  func sequential() {
    let chunk: UInt64 = 16 * 1024
    #expect(isSeen((0..<16).map { 0x7000_0000 + $0 * chunk }))
    #expect(isSeen((0..<40).map { 0x7000_0000 - $0 * chunk }))
    #expect(isSeen((0..<32).map { 0x7000_0000 + $0 % 4 * 0x100_0000 + $0 / 4 * chunk }))
  }

  @Test("Scattered chunks, few chunks, and chunks over a long time aren't sequential use")
  func scattered() {
    let chunk: UInt64 = 16 * 1024
    #expect(!isSeen((0..<100).map { 0x7000_0000 + $0 * 37 % 100 * 0x10_0000 }))
    #expect(!isSeen((0..<15).map { 0x7000_0000 + $0 * chunk }))
    #expect(!isSeen((0..<100).map { 0x7000_0000 + $0 * chunk }, each: 10_000_000))
  }
}
