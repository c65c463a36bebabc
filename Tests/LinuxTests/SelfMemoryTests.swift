import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("The memory of the daemon itself")
struct SelfMemoryTests {
  @Test func `What was freed of locked memory is given back to the kernel, too`() async throws {
    await #expect(processExitsWith: .success) {
      // Small enough to be of the heap. The last one keeps the heap from becoming shorter.
      let blocks = (0..<2000).compactMap { _ in malloc(16 * 1024) }
      for block in blocks { memset(block, 1, 16 * 1024) }
      SelfMemory.lock()
      // Where a process may not lock its memory, there is nothing to try.
      guard isLocked(blocks) else { return }
      for block in blocks.dropLast() { free(block) }
      #expect(resident(of: blocks) > 1900)
      SelfMemory.releaseUnusedSoon()
      try #require(try eventually { resident(of: blocks) < 100 })
      // The memory is locked again.
      try #require(try eventually { isLocked(blocks) })
    }
  }
}

/// The page in the middle of a block.
private func page(of block: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
  UnsafeMutableRawPointer(bitPattern: (UInt(bitPattern: block) + 8192) & ~(UInt(pageSize) - 1))
}

/// True if the kernel refuses to drop a page, of which nothing is used any more.
private func isLocked(_ blocks: [UnsafeMutableRawPointer]) -> Bool {
  madvise(blocks.last.flatMap(page(of:)), Int(pageSize), MADV_DONTNEED) == -1
}

/// The number of blocks whose middle is in RAM.
private func resident(of blocks: [UnsafeMutableRawPointer]) -> Int {
  blocks.count { block in
    var residency: UInt8 = 0
    return mincore(page(of: block), Int(pageSize), &residency) == 0 && residency & 1 == 1
  }
}
