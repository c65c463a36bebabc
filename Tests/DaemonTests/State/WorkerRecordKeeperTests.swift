import Glibc
import Linux
import Supervision
import Synchronization
import TestSupport
import Testing

@testable import Daemon

@Suite("The records that are kept of workers") struct WorkerRecordKeeperTests {
  private let scratch: Scratch
  private let keeper: WorkerRecordKeeper
  private let failures = LoggedLines()

  init() throws {
    scratch = try Scratch()
    keeper = try WorkerRecordKeeper(directory: "\(scratch.path)/workers")
  }

  private func record(_ name: String, _ state: String = "background") throws -> WorkerRecord {
    WorkerRecord(try .forTest(name), bootID: "boot", state: state)
  }

  private func save(_ record: WorkerRecord) {
    keeper.save(record) { [failures] in failures.log(.error, "\($0)") }
  }

  /// Makes the disk wait until the gate is opened.
  private func block() -> ThreadGate {
    let gate = ThreadGate()
    keeper.afterSaves { gate.pass() }
    return gate
  }

  @Test func `The last saved record is known at once, and on the disk in order`() throws {
    let gate = block()
    defer { gate.open() }
    #expect(keeper.isSaved)
    save(try record("web", "background"))
    save(try record("web", "suspended"))
    #expect(!keeper.isSaved && keeper.record(of: "web")?.state == "suspended")
    #expect(!keeper.contains("web"))
    gate.open()
    keeper.drain()
    #expect(keeper.isSaved && keeper.contains("web"))
    let next = try WorkerRecordKeeper(directory: "\(scratch.path)/workers")
    #expect(next.record(of: "web") == nil)
    #expect(try next.loadAll().records.map(\.state) == ["suspended"])
    #expect(next.record(of: "web")?.state == "suspended" && failures.all.isEmpty)
  }

  @Test func `A worker that has ended has no record, whatever was saved of it before`() throws {
    let gate = block()
    defer { gate.open() }
    save(try record("web"))
    save(try record("db"))
    keeper.remove("web")
    #expect(keeper.record(of: "web") == nil && keeper.record(of: "db") != nil)
    gate.open()
    keeper.drain()
    #expect(!keeper.contains("web") && keeper.contains("db"))
  }

  @Test func `A record that can't be written is reported, and counts as dealt with`() throws {
    Scratch.remove("\(scratch.path)/workers")
    save(try record("web"))
    keeper.drain()
    #expect(failures.all.count == 1 && failures.all[0].contains("No such file"))
    // An answer to a client doesn't wait for the save any more.
    #expect(keeper.isSaved && !keeper.contains("web"))
  }

  @Test func `An image waits for its worker's record, until its timeout`() throws {
    let gate = block()
    defer { gate.open() }
    save(try record("web"))
    let web = keeper.imageObstacle(of: "web", within: .seconds(60))
    let db = keeper.imageObstacle(of: "db", within: .seconds(60))
    #expect(web(false) == nil, "not known yet")
    let began = Clocks.monotonic
    let late = keeper.imageObstacle(of: "web", within: .milliseconds(20))
    for waits in [true, false] {
      #expect(late(waits)?.hasPrefix("its record isn't on the disk after 20 ms: ") == true)
    }
    #expect(Clocks.monotonic - began >= 20_000_000)
    let thread = try TestThread { #expect(web(true) == nil) }
    gate.open()
    thread.join()
    for waits in [true, false] {
      #expect(web(waits) == nil)
      #expect(db(waits)?.hasPrefix("its record can't be written: ") == true)
    }
  }

  @Test func `A barrier returns when the disk has what was saved before it`() throws {
    let gate = block()
    defer { gate.open() }
    save(try record("web"))
    let wait = keeper.barrier("web")
    let hasReturned = Mutex(false)
    let path = "\(scratch.path)/workers/web.worker"
    let thread = try TestThread {
      #expect(wait() == nil)
      hasReturned.withLock { $0 = fileExists(path) }
    }
    #expect(!hasReturned.withLock { $0 })
    gate.open()
    thread.join()
    #expect(hasReturned.withLock { $0 })
  }

  @Test func `A barrier reports a record that couldn't be replaced: it says hibernated`() throws {
    save(try record("web", "hibernated"))
    #expect(keeper.barrier("web")() != nil && keeper.barrier("db")() == nil)
    save(try record("web", "resuming"))
    #expect(keeper.barrier("web")() == nil)
    // From here on no record that is saved reaches the disk.
    save(try record("web", "hibernated"))
    keeper.drain()
    let workers = "\(scratch.path)/workers"
    #expect(rename(workers, workers + ".away") == 0)
    try scratch.write("workers", "not a directory")
    save(try record("web", "resuming"))
    keeper.drain()
    #expect(failures.all.count == 1)
    #expect(unlink(workers) == 0 && rename(workers + ".away", workers) == 0)
    #expect(keeper.barrier("web")()?.contains("hibernated") == true)
    // For the next daemon a damaged record counts as missing.
    try scratch.write("workers/web.worker", "damaged")
    #expect(keeper.barrier("web")() == nil)
  }

  @Test func `The loop is called back in a turn after the disk has the records`() throws {
    let loop = try EventLoop()
    keeper.loop = try LoopReturn(loop)
    let gate = block()
    defer { gate.open() }
    save(try record("web"))
    var calls = 0
    keeper.whenSaved { calls += 1 }
    #expect(!keeper.isSaved)
    gate.open()
    keeper.drain()
    #expect(keeper.isSaved && calls == 0)
    try loop.turn { calls > 0 }
    #expect(calls == 1)
  }
}
