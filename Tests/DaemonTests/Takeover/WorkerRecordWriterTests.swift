import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("What is written down of a worker for the next daemon") struct WorkerRecordWriterTests {
  private let scratch: Scratch
  private let writer: WorkerRecordWriter
  private let sleeping: SleepWorld

  init() throws {
    scratch = try Scratch()
    sleeping = try SleepWorld()
    writer = WorkerRecordWriter(
      records: try WorkerRecordKeeper(directory: scratch.path), bootID: "boot", log: DaemonLog())
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

  @Test func `A worker's record has its process and what the daemon knows of it`() throws {
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

  @Test func `A worker is recorded as hibernated only with an image`() throws {
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

  @Test func `Records are written again when a volume is mounted at the images' directory`() throws
  {
    let (world, directory) = (try AdapterWorld(memory: FakeMemory()), scratch.path + "/images")
    let monitor = ImageDiskMonitor(
      directory: directory, ledger: WriteLedger(path: scratch.path + "/writes"),
      ImageDiskMonitor.Needs(
        read: { then in then(ImageDisk.read(directory, [], wrapped: nil)) }, send: { _ in },
        save: { _ in }, time: { 0 }, log: { _, _ in }))
    world.recordWriter.follow(monitor, of: world.workers, world.driver)
    let (awake, trimmed) = (try world.add("awake"), try world.add("trimmed"))
    for worker in [awake, trimmed] {
      world.sleeps.makeSleep(for: worker)
      world.recordWriter.save(worker, state: .background)
    }
    func recorded(_ name: String) -> String? {
      world.services.records.record(of: name)?.imageDirectory
    }
    try makeDirectory(directory, mode: 0o700)
    monitor.sendReading()
    let first = try #require(ImageDirectory(of: directory + "/web.image"))
    #expect(recorded("awake") == first.text && recorded("trimmed") == first.text)
    trimmed.sleep?.missing = MissingBytes(1 << 20, isTrimmed: true, in: first)
    // A volume is mounted there. The image of a trim stays in the directory below.
    #expect(rename(directory, directory + ".below") == 0)
    try makeDirectory(directory, mode: 0o700)
    monitor.sendReading()
    let second = try #require(ImageDirectory(of: directory + "/web.image"))
    #expect(first != second)
    #expect(recorded("awake") == second.text && recorded("trimmed") == first.text)
    let state = world.services.records.record(of: "awake")?.state
    #expect(state == WorkerState.background.rawValue)
    // All of its memory has come back.
    trimmed.sleep?.missing = nil
    monitor.sendReading()
    #expect(recorded("trimmed") == second.text)
  }

  @Test func `A worker that may sleep without an image isn't recorded as hibernated`() throws {
    let worker = try worker()
    let resting = RestingImage(
      path: "/images/web.image", expecting: .unknown(in: try #require(ImageDirectory(text: "5-6"))))
    worker.sleep?.adopt(asleepWith: ImageOnDisk(resting: resting))
    let record = try #require(writer.record(of: worker, state: .hibernated))
    #expect(record.state == "resuming" && record.imageDirectory == "5-6")
    #expect(record.imageMark == nil)
  }

  @Test func `A worker that returns to the foreground is recorded there`() throws {
    let worker = try worker()
    #expect(writer.record(of: worker, state: .foreground)?.wasInFront == true)
    #expect(writer.record(of: worker, state: .background)?.wasInFront == false)
    worker.returnsToFront = true
    #expect(writer.record(of: worker, state: .resuming)?.wasInFront == true)
  }
}

@Suite("The channels of a worker that an earlier daemon has started") struct SurvivorChannelsTests {
  private let world: AdapterWorld
  private let directory: String

  init() throws {
    world = try AdapterWorld()
    directory = world.scratch.path + "/channels"
  }

  private func open(
    notify: String? = nil, pressure: String? = nil, worker: String? = nil
  ) throws -> WorkerChannels {
    let record = try world.record {
      $0.notifySocket = notify
      $0.pressureWatch = pressure
      $0.workerSocket = worker
    }
    return SurvivorChannels(record: record, acceptsDescriptors: false, log: world.log).open()
  }

  @Test func `A worker that had no channels gets none`() throws {
    let channels = try open()
    #expect(channels.notify == nil && channels.pressure == nil && channels.talk == nil)
    #expect(world.logged == "")
  }

  @Test func `The sockets have the names that the worker knows, in any case`() throws {
    let (notify, worker) = ("\(directory)/web.notify", "\(directory)/web.worker")
    let channels = try open(notify: notify, pressure: "\(directory)/web.pressure", worker: worker)
    #expect(channels.notify != nil && channels.pressure != nil && channels.talk != nil)
    try UnixSocket.connected(to: notify, .datagram).writeAll("READY=1")
    _ = try WorkerSocketPeer(worker)
    var status = stat()
    #expect(stat(directory, &status) == 0 && status.st_mode & 0o077 == 0)
  }

  @Test func `An abstract name has no directory`() throws {
    let name = "@dormouse-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    #expect(try open(notify: name).notify != nil)
    #expect(world.logged == "")
  }

  @Test func `A channel that can't be opened again is logged, and the others are opened`() throws {
    try world.scratch.write("file", "")
    let channels = try open(
      notify: world.scratch.path + "/file/web.notify", worker: "\(directory)/web.worker")
    #expect(channels.notify == nil && channels.talk != nil)
    #expect(world.logged.contains("web: adopted without its channels to the daemon: "))
  }
}
