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

  private func worker() throws -> WorkerUnit {
    let worker = WorkerUnit.forTest("web") { $0.importance = 40 }
    worker.process = try .forTest("web")
    sleeping.sleeps.makeSleep(for: worker)
    return worker
  }

  @Test func `A worker without a process, or one that has ended, has no record`() throws {
    #expect(writer.record(of: .forTest("web"), state: .background) == nil)
    #expect(writer.record(of: try worker(), state: .terminated) == nil)
  }

  @Test("A worker's record identifies its process and has what the daemon knows of it")
  func contents() throws {
    let worker = try worker()
    worker.watchdogInterval = .seconds(3)
    worker.asleepSince = Instant(nanoseconds: 5)
    worker.external = ExternalWorker(mayBeTerminated: true)
    let record = try #require(writer.record(of: worker, state: .suspended))
    #expect(record.process.pid == getpid() && record.bootID == "boot")
    #expect(record.name == "web" && record.importance == 40 && record.state == "suspended")
    #expect(record.watchdog == 3_000_000_000 && record.asleepSince == 5)
    #expect(record.external == .mayBeTerminated && !record.wasInFront)
  }

  @Test(
    "A worker is recorded as hibernated only with an image, because without one its memory is lost")
  func image() throws {
    let worker = try worker()
    #expect(writer.record(of: worker, state: .hibernated)?.state == "suspended")
    worker.sleep?.adopt(asleepWith: ImageOnDisk(path: "/images/web.image"))
    let record = try #require(writer.record(of: worker, state: .hibernated))
    #expect(record.state == "hibernated" && record.imagePath == "/images/web.image")
    // The path stays in the record while the worker is woken.
    #expect(writer.record(of: worker, state: .resuming)?.imagePath == "/images/web.image")
  }

  @Test func `A worker's record names the directory of its image in every state`() throws {
    let worker = try worker()
    var writer = writer
    writer.images = try #require(ImageDirectory(of: scratch.path + "/image"))
    for state in WorkerState.allCases where state != .terminated {
      let record = try #require(writer.record(of: worker, state: state))
      #expect(record.imageDirectory == writer.images?.text, "\(state)")
    }
    // An image that was made in another directory is there.
    let resting = RestingImage(
      path: "/images/web.image",
      expecting: .image(
        try #require(ImageMark(text: "1-2-3-4")), in: try #require(ImageDirectory(text: "5-6"))))
    worker.sleep?.adopt(asleepWith: ImageOnDisk(resting: resting))
    for state in [WorkerState.hibernated, .resuming] {
      #expect(writer.record(of: worker, state: state)?.imageDirectory == "5-6", "\(state)")
    }
  }

  @Test("A worker that sleeps perhaps without an image isn't recorded as hibernated")
  func doubtful() throws {
    let worker = try worker()
    let resting = RestingImage(
      path: "/images/web.image", expecting: .unknown(in: try #require(ImageDirectory(text: "5-6"))))
    worker.sleep?.adopt(asleepWith: ImageOnDisk(resting: resting))
    let record = try #require(writer.record(of: worker, state: .hibernated))
    #expect(record.state == "resuming" && record.imageDirectory == "5-6")
    #expect(record.imageMark == nil)
  }

  @Test(
    "A foreground worker, or one that returns there, is in the foreground under the next daemon")
  func front() throws {
    let worker = try worker()
    #expect(writer.record(of: worker, state: .foreground)?.wasInFront == true)
    #expect(writer.record(of: worker, state: .background)?.wasInFront == false)
    worker.returnsToFront = true
    #expect(writer.record(of: worker, state: .resuming)?.wasInFront == true)
  }

  @Test func `The next daemon finds the state that was saved`() throws {
    let worker = try worker()
    writer.save(worker, state: .background)
    writer.save(.forTest("db"), state: .background)
    records.drain()
    let loaded = try WorkerRecordKeeper(directory: scratch.path).loadAll()
    #expect(loaded.records.map(\.name) == ["web"] && loaded.failures.isEmpty)
    #expect(loaded.records.first?.state == "background")
  }
}
