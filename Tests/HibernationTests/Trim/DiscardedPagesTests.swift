import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Memory of trimmed workers that the kernel discards while it is read for the next trim.
@Suite(.serialized, .needsUserfaults)
struct DiscardedPagesTests {
  let service = HibernationService()

  @Test("Of memory that no pager serves, missing pages read as zeros, and others as they are")
  func missing() throws {
    let test = TrimKernelTests.Case(program: "missing_calls", name: "use")
    let worker = try TrimKernelTests.Worker(test, service)
    try worker.trim()
    var memory = try ProcessMemory(pid: worker.victim.process.pid)
    let size = Int(pageSize)
    // Two slots of its region.
    let range = PageRange(address: try #require(worker.address) + 1 << 20, length: 1 << 20)
    let used = 3 << 18
    var page = [UInt8](repeating: 0, count: size)
    try memory.read(
      [PageRange(address: range.address + UInt64(used), length: pageSize)], into: &page,
      direct: true)
    #expect(page.contains { $0 != 0 })
    memory.mayLackPages = true
    var all = [UInt8](repeating: 1, count: Int(range.length))
    try memory.read([range], into: &all, direct: true)
    #expect(all[..<size].allSatisfy { $0 == 0 })
    #expect(Array(all[used..<(used + size)]) == page)
    try worker.finish()
  }

  @Test("Memory that a trimmed worker has freed lazily may be discarded during its next trim")
  func discarded() throws {
    let victim = try Victim([try Fixture.compile("lazyfree")], parking: .frozen)
    let fields = try victim.line().split(separator: " ")
    try #require(fields.count == 3 && fields[0] == "ready")
    let address = try #require(UInt64(fields[2].dropFirst(2), radix: 16))
    let path = Fixture.imagePath()
    try trim(victim, to: path)
    let area = PageRange(address: address, length: 16 << 20)
    let discarder = try Discarder(of: area, in: victim.process.identity, during: path)
    defer { discarder.end() }
    for _ in 0..<Nightly.rounds(10, of: 50) {
      try #require(try victim.ask("free") == "freed")
      try trim(victim, to: path)
    }
    #expect(try victim.ask("check") == "whole")
    try service.fill(victim.target)
    #expect(try victim.ask("check") == "whole")
  }

  /// Trims the worker. If that waits for a page that no pager fills, it never ends.
  private func trim(_ victim: Victim, to path: String) throws {
    let request = TrimRequest(
      HibernationRequest(victim.target, to: path), record: path + ".trim",
      mechanism: .userfaultfd)
    let (ended, failure) = (Semaphore(), Failure())
    service.trim(request) { result in
      if case .failure(let error) = result { failure.error.withLock { $0 = error } }
      ended.signal()
    }
    try #require(ended.wait(within: .seconds(Talk.timeout)))
    if let error = failure.error.withLock({ $0 }) { throw error }
  }

  private final class Failure: Sendable {
    let error = Mutex<HibernationError?>(nil)
  }

  /// A thread that makes the kernel discard lazily freed pages while an image is being written.
  private final class Discarder {
    private let hasEnded: OneTimeEvent
    private let thread: TestThread

    init(of area: PageRange, in process: ProcessIdentity, during path: String) throws {
      let hasEnded = OneTimeEvent()
      self.hasEnded = hasEnded
      let partial = ImageWriter.partialPath(of: path)
      let pidfd = try process.openPidfd()
      thread = try TestThread {
        while !hasEnded.wait(until: Deadline(in: .zero)) {
          if !fileExists(partial) { continue }
          // The last pages are read last.
          for range in [area].batches(of: 1, bytes: 1 << 20).joined().reversed() {
            try? range.pageOut(of: process.pid, through: pidfd)  // Not each user may.
          }
        }
      }
    }

    func end() {
      hasEnded.raise()
      thread.join()
    }
  }
}
