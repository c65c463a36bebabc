import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite struct MemoryFileTests {
  @Test func `A memfd of a process is opened again by its inode`() throws {
    let original = try Descriptor.memoryFile("test", [1, 2, 3])
    let file = try #require(MemoryFile(original))
    let tree = ProcessTree(processes: [try ProcessStat.read(getpid())])
    let again = try #require(file.open(in: tree))
    #expect(try again.readBytes(upTo: 8, at: 0) == [1, 2, 3])
    #expect(MemoryFile(again) == file)
    #expect(MemoryFile(inode: .max).open(in: tree) == nil)
    withExtendedLifetime(original) {}
  }

  @Test func `A file that isn't a memfd isn't opened, even if its inode is the right one`() throws {
    let scratch = try Scratch(["memfd:test": ""])
    let other = try Descriptor.open("\(scratch.path)/memfd:test")
    let file = try #require(MemoryFile(other))
    #expect(file.file(behind: "/proc/self/fd/\(other.raw)") == nil)
    withExtendedLifetime(other) {}
  }
}
