import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("What is written down of a worker for the next daemon") struct WorkerRecordWriterTests {
  private let scratch: Scratch
  private let records: WorkerRecordKeeper
  private let writer: WorkerRecordWriter
  private let timers = FakeTimers()
  private let sleeping: SleepWorld

  init() throws {
    scratch = try Scratch()
    sleeping = try SleepWorld()
    records = try WorkerRecordKeeper(directory: scratch.path)
    writer = WorkerRecordWriter(records: records, bootID: "boot", log: DaemonLog())
  }

  private func runtime() throws -> WorkerUnit {
    let runtime = WorkerUnit.forTest("web") { $0.importance = 40 }
    runtime.process = try .forTest("web")
    sleeping.sleeps.makeSleep(for: runtime)
    return runtime
  }

  @Test("A worker without a process, or one that has ended, has no record")
  func nothing() throws {
    #expect(writer.record(of: .forTest("web"), state: .background) == nil)
    #expect(writer.record(of: try runtime(), state: .terminated) == nil)
  }

  @Test("A worker's record identifies its process and has what the daemon knows of it")
  func contents() throws {
    let runtime = try runtime()
    runtime.watchdogInterval = .seconds(3)
    runtime.asleepSince = Instant(nanoseconds: 5)
    runtime.external = ExternalWorker(mayBeTerminated: true)
    let record = try #require(writer.record(of: runtime, state: .suspended))
    #expect(record.process.pid == getpid() && record.bootID == "boot")
    #expect(record.name == "web" && record.importance == 40 && record.state == "suspended")
    #expect(record.watchdog == 3_000_000_000 && record.asleepSince == 5)
    #expect(record.external == .mayBeTerminated && !record.wasInFront)
  }

  @Test(
    "A worker is recorded as hibernated only with an image, because without one its memory is lost")
  func image() throws {
    let runtime = try runtime()
    #expect(writer.record(of: runtime, state: .hibernated)?.state == "suspended")
    runtime.sleep?.adopt(asleepWith: ImageOnDisk(path: "/images/web.image"))
    let record = try #require(writer.record(of: runtime, state: .hibernated))
    #expect(record.state == "hibernated" && record.imagePath == "/images/web.image")
    // Kept while it is woken, too.
    #expect(writer.record(of: runtime, state: .resuming)?.imagePath == "/images/web.image")
  }

  @Test(
    "A foreground worker, or one that returns there, is in the foreground under the next daemon")
  func front() throws {
    let runtime = try runtime()
    #expect(writer.record(of: runtime, state: .foreground)?.wasInFront == true)
    #expect(writer.record(of: runtime, state: .background)?.wasInFront == false)
    runtime.returnsToFront = true
    #expect(writer.record(of: runtime, state: .resuming)?.wasInFront == true)
  }

  @Test("The next daemon finds the state that was saved")
  func saved() throws {
    let runtime = try runtime()
    writer.save(runtime, state: .background)
    writer.save(.forTest("db"), state: .background)
    records.drain()
    let found = try WorkerRecordKeeper(directory: scratch.path).loadAll()
    #expect(found.records.map(\.name) == ["web"] && found.failures.isEmpty)
    #expect(found.records.first?.state == "background")
  }
}
