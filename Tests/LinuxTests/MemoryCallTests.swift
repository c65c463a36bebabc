import CLinux
import Glibc
import Testing

@testable import Linux

/// Which calls change a process's mappings, by their arguments.
struct MemoryCallTests {
  /// The numbers on x86-64.
  private enum Call {
    static let read = 0
    static let mmap = 9
    static let munmap = 11
    static let mremap = 25
    static let clone: Int64 = 56
    static let clone3: Int64 = 435
  }

  private func changed(_ number: Int, _ arguments: [UInt64]) -> [Range<UInt64>] {
    var ranges: [UInt64] = [0, 0, 0, 0]
    let count = clinux_changed_memory(Int64(number), arguments, &ranges)
    return (0..<Int(count)).map { ranges[$0 * 2]..<ranges[$0 * 2 + 1] }
  }

  @Test("What a call unmaps or moves is whole pages, and mremap with MREMAP_FIXED has two places")
  func ranges() {
    #expect(changed(Call.munmap, [0x10000, 0x1800, 0, 0, 0, 0]) == [0x10000..<0x12000])
    #expect(
      changed(Call.mremap, [0x10000, 0x1000, 0x2000, 1, 0x90000, 0]) == [0x10000..<0x11000])
    #expect(
      changed(Call.mremap, [0x10000, 0x1000, 0x2000, 3, 0x90000, 0])
        == [0x10000..<0x11000, 0x90000..<0x92000])
    #expect(changed(Call.mmap, [0x10000, 0x1000, 3, 0x22, 0, 0]).isEmpty)
    #expect(changed(Call.mmap, [0x10000, 0x1000, 3, 0x32, 0, 0]) == [0x10000..<0x11000])
    #expect(changed(Call.read, [0x10000, 0x1000, 0, 0, 0, 0]).isEmpty)
  }

  @Test("A call that shares the memory with its child doesn't count as a fork")
  func forks() {
    #expect(clinux_may_fork(Call.clone, 0x1200011) == 1)
    #expect(clinux_may_fork(Call.clone, 0x4111) == 0, "CLONE_VM | CLONE_VFORK | SIGCHLD")
    #expect(clinux_may_fork(Call.clone3, 0) == 1)
    #expect(clinux_may_fork(Int64(Call.munmap), 0) == 0)
  }

  @Test("A process that waits in another call, and one that has ended, don't fork")
  func idle() throws {
    let child = try TestChild("sleep", "60")
    let calls = MemoryCalls(of: child.pid)
    #expect(!calls.mayFork)
    #expect(calls.thread(changing: 0x1000) == nil)
    #expect(!MemoryCalls(of: 1 << 22 - 1).mayFork)
  }
}
