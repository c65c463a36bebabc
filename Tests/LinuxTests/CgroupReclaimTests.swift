import TestSupport
import Testing

@testable import Linux

/// Requests to reclaim memory of a group. The directory is no cgroup, so only what is written to
/// its files is tested.
@Suite("Reclaim of a group's memory")
struct CgroupReclaimTests {
  @Test("A request asks for all bytes, some at a time, and for anonymous memory only")
  func requests() throws {
    let path = try Scratch.make()
    defer { Scratch.remove(path) }
    try StateFile.replace("\(path)/cgroup.events", with: [], durability: .none)
    let group = try WorkerCgroup(path: path)
    #expect(!group.canReclaim)
    let file = "\(path)/memory.reclaim"
    try StateFile.replace(file, with: [], durability: .none)
    #expect(group.canReclaim)
    #expect(try !WorkerCgroup(path: path, isExternal: true).canReclaim)
    try group.reclaim(20 << 20, until: Deadline(in: .seconds(60)))
    #expect(try readText(file) == "4194304 swappiness=max")
  }
}
