import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("The files of a worker's output") struct WorkerLogsTests {
  @Test func `They are removed with what was rotated, and those of other workers stay`() throws {
    let others = ["web.log.x.log", "web2.log", "web.log.1.log", "web.logs", "a.log"]
    let ofWorker = ["web.log", "web.times", "web.log.1", "web.log.23"]
    let scratch = try Scratch(
      Dictionary(uniqueKeysWithValues: (others + ofWorker).map { ($0, "text") }))
    #expect(WorkerLogs.remove(of: "web", from: scratch.path) == nil)
    #expect(try Set(listDirectory(scratch.path)) == Set(others))
  }

  @Test("A log that can't be removed is named, the others are removed; no directory has no logs")
  func stays() throws {
    let scratch = try Scratch(["web.log": "text"])
    #expect(mkdir(scratch.path + "/web.log.1", 0o700) == 0)
    let failure = WorkerLogs.remove(of: "web", from: scratch.path)
    #expect(failure?.code == EISDIR)
    #expect(try listDirectory(scratch.path) == ["web.log.1"])
    #expect(WorkerLogs.remove(of: "web", from: scratch.path + "/nowhere") == nil)
  }
}
