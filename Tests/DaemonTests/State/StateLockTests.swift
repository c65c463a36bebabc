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

  @Test func `The lock ends with its holder`() throws {
    do { _ = try lock() }
    _ = try lock()
  }

  @Test("A daemon that starts waits for a lock that a killed predecessor's child still has")
  func releasedSoon() async throws {
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

  @Test("A released lock can be acquired while its earlier owner's descriptors stay open")
  func releasedEarly() throws {
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
