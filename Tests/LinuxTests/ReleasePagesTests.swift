import Linux
import Testing

@Suite("A buffer's memory") struct ReleasePagesTests {
  @Test func `Whole pages are freed and read as zeros, and pages that other memory shares stay`() {
    let size = Int(pageSize)
    let all = UnsafeMutableRawBufferPointer.allocate(byteCount: 4 * size, alignment: size)
    defer { all.deallocate() }
    all.initializeMemory(as: UInt8.self, repeating: 7)
    let middle = UnsafeMutableRawBufferPointer(rebasing: all[(size / 2)..<(3 * size + 1)])
    middle.releasePages()
    #expect(all[size - 1] == 7 && all[3 * size] == 7)
    #expect(all[size..<(3 * size)].allSatisfy { $0 == 0 })
    UnsafeMutableRawBufferPointer(rebasing: all[1..<2]).releasePages()
    #expect(all[1] == 7)
  }
}
