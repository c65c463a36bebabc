import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("The lock of a state directory") struct StateLockTests {
  private let scratch: Scratch
  private var path: String { scratch.path + "/state" }

  init() throws {
    scratch = try Scratch()
    mkdir(scratch.path + "/state", 0o700)
  }

  private func lock() throws -> StateLock { try StateLock(openTrusted(path, as: .exclusive)) }

  private func expectInUse(_ body: () throws -> Void) {
    do {
      try body()
      Issue.record("the directory was locked twice")
    } catch StartError.inUse(let path) {
      #expect(path == self.path)
    } catch { Issue.record("\(error)") }
  }

  @Test func `A second daemon is refused, also after the lock file was removed`() throws {
    let first = try lock()
    expectInUse { _ = try lock() }
    #expect(unlink(path + "/lock") == 0)
    expectInUse { _ = try lock() }
    withExtendedLifetime(first) {}
  }

  @Test func `The lock of an earlier version, which locks only the file, is respected`() throws {
    let file = try Descriptor.open(path + "/lock", O_RDWR | O_CREAT, mode: 0o600)
    #expect(flock(file.raw, LOCK_EX | LOCK_NB) == 0)
    expectInUse { _ = try lock() }
  }

  @Test func `A daemon that starts waits for the lock of a killed one's child`() async throws {
    let directory = path
    let first = try lock()
    let waiting = Task.detached {
      _ = try StateLock(openTrusted(directory, as: .exclusive), timeout: .seconds(60))
    }
    // Most runs then release the lock while the task waits. A task that begins later gets it at
    // once.
    try await Task.sleep(for: .milliseconds(30))
    first.release()
    try await waiting.value
  }

  @Test func `A lock ends with its holder, or when it is released`() throws {
    do { _ = try lock() }
    let first = try lock()
    first.release()
    _ = try lock()
    withExtendedLifetime(first) {}
  }

  @Test func `A directory that was replaced after it was opened isn't used`() throws {
    let opened = try openTrusted(path, as: .exclusive)
    #expect(rename(path, path + ".old") == 0 && mkdir(path, 0o700) == 0)
    #expect(throws: StartError.self) { _ = try StateLock(opened) }
  }
}

@Suite("The files of a worker's output") struct WorkerLogsTests {
  @Test func `They are removed with what was rotated, and those of other workers stay`() throws {
    let others = ["web.log.x.log", "web2.log", "web.log.1.log", "web.logs", "a.log"]
    let ofWorker = ["web.log", "web.times", "web.log.1", "web.log.23"]
    let scratch = try Scratch(
      Dictionary(uniqueKeysWithValues: (others + ofWorker).map { ($0, "text") }))
    #expect(WorkerLogs.remove(of: "web", from: scratch.path) == nil)
    #expect(try Set(listDirectory(scratch.path)) == Set(others))
  }

  @Test func `A log that can't be removed is named, and the others are removed`() throws {
    let scratch = try Scratch(["web.log": "text"])
    #expect(mkdir(scratch.path + "/web.log.1", 0o700) == 0)
    #expect(WorkerLogs.remove(of: "web", from: scratch.path)?.code == EISDIR)
    #expect(try listDirectory(scratch.path) == ["web.log.1"])
    #expect(WorkerLogs.remove(of: "web", from: scratch.path + "/nowhere") == nil)
  }
}
