import TestSupport
import Testing

@testable import Linux

@Suite("Mappings that are remembered") struct MappingMemoTests {
  @Test func `Nothing is remembered where memory can have tags, which only smaps shows`() throws {
    let child = try TestChild("sleep", "660")
    #expect(try eventually { try child.sleeps })
    let mappings = try MemoryMapping.all(of: child.pid)
    let memo = MappingMemo(pid: child.pid, mappings: mappings, canHaveTags: false)
    #expect(try memo?.recall(pid: child.pid)?.count == mappings.count)
    #expect(MappingMemo(pid: child.pid, mappings: mappings, canHaveTags: true) == nil)
  }
}
