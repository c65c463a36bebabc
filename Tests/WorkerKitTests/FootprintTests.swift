import Glibc
import Linux
import Testing

@testable import WorkerKit

/// Measures the process in which all tests run. The tests are serial, and allow for what other
/// tests do meanwhile.
@Suite(.timeLimit(.minutes(10)), .serialized) struct FootprintTests {
  private let megabyte: Int64 = 1 << 20

  @Test func `WorkerKit measures the footprint that the daemon measures`() throws {
    let expected = try #require(try Linux.Footprint.measure(getpid()))
    let measured = WorkerKit.Footprint.current()
    #expect(measured.total > 0)
    #expect(abs(measured.total - expected.footprint) < 64 * megabyte)
    let mappings = WorkerKit.Footprint.byMapping()
    #expect(mappings.contains { $0.name == "[heap]" || $0.name == "[anonymous]" })
    #expect(mappings.map(\.bytes) == mappings.map(\.bytes).sorted(by: >))
  }

  @Test func `Purgeable contents count as shared memory until they are discarded`() throws {
    let worker = Worker(socketPath: nil)
    let size = 96 << 20
    let data = PurgeableData(count: size, worker: worker) { bytes in
      for offset in stride(from: 0, to: size, by: 4096) { bytes[offset] = 1 }
    }
    #expect(WorkerKit.Footprint.current().sharedMemory >= Int64(size))
    #expect(
      WorkerKit.Footprint.byMapping().contains {
        $0.name.contains("memfd:purgeable") && $0.bytes >= Int64(size)
      })
    data.endContentAccess()
    let before = WorkerKit.Footprint.current().sharedMemory
    data.discardContentIfPossible()
    #expect(WorkerKit.Footprint.current().sharedMemory < before - 64 * megabyte)
  }

  @Test(.enabled(if: getenv("WORKERKIT_SANITIZED") == nil, "sanitizers bring their own allocator"))
  func `One warning returns the memory of a cache's small values to the machine`()
    async throws
  {
    let worker = Worker(socketPath: nil)
    let cache = MemoryCache<Int, [UInt8]>(worker: worker)
    // The values are small: their memory is the allocator's, which keeps it unless it is trimmed.
    for key in 0..<100_000 { cache[key] = [UInt8](repeating: 1, count: 1000) }
    let (before, after) = await worker.simulateMemoryWarning()
    #expect(cache.count == 0)
    #expect(before.anonymous - after.anonymous > 70 * megabyte)
  }
}
