import Glibc
import Testing

@testable import Hibernation
@testable import Linux

/// Copies of the memory of processes that run meanwhile.
struct CopyAheadTests {
  @Test("Memory that a running process unmaps while it is copied isn't an error of the disk")
  func unmapped() throws {
    let size = Int(pageSize)
    let flags = MAP_PRIVATE | MAP_ANONYMOUS
    let area = try #require(mmap(nil, size, PROT_READ | PROT_WRITE, flags, -1, 0))
    defer { munmap(area, size) }
    memset(area, 7, size)
    let kind = PagePlan.Kind(readable: true, writable: true, absentIsZero: true)
    // The kernel maps nothing at the second address.
    let chunks = [UInt64(UInt(bitPattern: area)), 1 << 16].map {
      PagePlan.PlannedChunk(
        process: 0, kind: kind, ranges: [PageRange(address: $0, length: pageSize)],
        length: pageSize)
    }
    func capture(to path: String, isAhead: Bool) throws -> Int {
      let writer = try ImageWriter(path: path)
      try Capture(
        chunks: chunks, memories: [try ProcessMemory(pid: getpid())], writer: writer,
        compression: .lz4, isAhead: isAhead
      ).run(lanes: 1)
      let process = ImageProcess(pid: getpid(), startTime: 1, scratchAddress: 0, threads: [])
      _ = try writer.commit(processes: [process])
      return try ImageReader(path: path).chunks.count
    }
    #expect(try capture(to: Fixture.imagePath(), isAhead: true) == 1)
    #expect(throws: SystemCallError.self) { try capture(to: Fixture.imagePath(), isAhead: false) }
  }
}
