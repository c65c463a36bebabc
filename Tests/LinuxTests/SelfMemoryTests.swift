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

  @Test func `A release of unused code drops code, and no other file's pages`() async throws {
    await #expect(processExitsWith: .success) {
      let content = [UInt8](repeating: 1, count: 4 * Int(pageSize))
      let file = try Descriptor.memoryFile("test", content)
      let unchanged = try #require(map(file, length: content.count))
      let changed = try #require(map(file, length: content.count))
      memset(changed, 2, content.count)
      try #require(mprotect(changed, content.count, PROT_READ) == 0)
      try #require(mprotect(unchanged, content.count, PROT_READ) == 0)
      #expect(bytes(at: unchanged, count: content.count) == content)
      // MADV_PAGEOUT: the changed pages are in swap then, if there is any.
      madvise(changed, content.count, 21)
      let before = try MemoryMapping.all(of: getpid())
      let relocated = relocatedConstants(before)
      #expect(!relocated.isEmpty)
      releaseUnusedCode()
      let after = try MemoryMapping.all(of: getpid())
      #expect(residentCode(after) < residentCode(before))
      #expect(relocatedConstants(before) == relocated)
      #expect(bytes(at: changed, count: content.count).allSatisfy { $0 == 2 })
      let start = UInt64(UInt(bitPattern: unchanged))
      let mapping = try #require(after.first { $0.start == start })
      #expect(mapping.resident > 0)
    }
  }
}

/// Maps a file for this process alone.
private func map(_ file: Descriptor, length: Int) -> UnsafeMutableRawPointer? {
  let address = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.raw, 0)
  return address == MAP_FAILED ? nil : address
}

private func bytes(at address: UnsafeRawPointer?, count: Int) -> [UInt8] {
  Array(UnsafeRawBufferPointer(start: address, count: count))
}

private func residentCode(_ mappings: [MemoryMapping]) -> UInt64 {
  mappings.filter { $0.executable && $0.hasFile }.reduce(0) { $0 + $1.resident }
}

/// The contents of read-only mappings of files of which the process has its own pages.
private func relocatedConstants(_ mappings: [MemoryMapping]) -> [[UInt8]] {
  mappings.filter { $0.hasFile && $0.readable && !$0.writable && $0.anonymous > 0 }.map {
    bytes(at: UnsafeRawPointer(bitPattern: UInt($0.start)), count: Int($0.length))
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
