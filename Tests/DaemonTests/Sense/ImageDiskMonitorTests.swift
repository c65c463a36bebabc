import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon
@testable import Hibernation

@Suite("The disk of the images") struct ImageDiskMonitorTests {
  /// A disk that answers when the test decides.
  private final class Disk {
    var answers: [(ImageDisk?) -> Void] = []
    var readings: [DiskReading] = []
    var lines: [String] = []
    var saved: [WriteLedger] = []
    var time: Int64 = 1_000_000

    func answer(_ disk: ImageDisk?) { answers.removeFirst()(disk) }
  }

  private let disk = Disk()
  private let monitor: ImageDiskMonitor
  private let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    monitor = ImageDiskMonitor(
      directory: "/images", ledger: WriteLedger(path: scratch.path + "/writes"),
      ImageDiskMonitor.Needs(
        read: { [disk] in disk.answers.append($0) },
        send: { [disk] in if case .disk(let reading) = $0 { disk.readings.append(reading) } },
        save: { [disk] in disk.saved.append($0) }, time: { [disk] in disk.time },
        log: { [disk] in disk.lines.append("\($0): \($1)") }))
  }

  private func reading(
    free: Int64 = 100, images: [String: Int64] = [:], bases: [String: Int64] = [:]
  ) -> ImageDisk {
    var disk = ImageDisk()
    (disk.total, disk.free) = (.megabytes(1000), .megabytes(free))
    (disk.images, disk.bases) = (images, bases)
    return disk
  }

  private func read(_ reading: ImageDisk?) {
    monitor.sendReading()
    monitor.didBeginReading()
    disk.answer(reading)
  }

  @Test func `The engine gets the disk's free space, to which removable bases count`() {
    read(
      reading(images: ["asleep": 5_000_000], bases: ["asleep": 1_000_000, "awake": 2_000_000]))
    #expect(
      disk.readings == [
        DiskReading(
          total: .megabytes(1000), free: .megabytes(100) + ByteCount(2_000_000),
          images: ByteCount(6_000_000), writtenToday: .zero)
      ])
    #expect(monitor.base(of: "awake") == 2_000_000)
  }

  @Test func `A disk that doesn't answer counts as full, which is logged once`() {
    read(reading())
    read(nil)
    read(nil)
    #expect(disk.readings.suffix(2).allSatisfy { $0.free == .zero && $0.total == .megabytes(1000) })
    read(reading())
    #expect(disk.readings.last?.free == .megabytes(100))
    #expect(disk.lines.count == 2 && disk.lines[0].contains("within 1 s (/images)"))
  }

  @Test func `The disk is read again if an image was written during the reading`() {
    var isDone = false
    monitor.sendReading { isDone = true }
    monitor.didBeginReading()
    monitor.didWriteImage(of: .forTest("web"), length: 10, bytes: 10, took: .seconds(1))
    disk.answer(reading())
    #expect(disk.readings.isEmpty && !isDone)
    monitor.didBeginReading()
    disk.answer(reading(images: ["web": 10]))
    #expect(disk.readings.map(\.images.bytes) == [10] && isDone)
  }

  @Test func `The bytes that are written to the disk in a day are counted and kept`() {
    monitor.didWriteImage(of: .forTest("web"), length: 10, bytes: 7, took: .milliseconds(1500))
    monitor.didWriteImage(of: .forTest("web"), length: 10, bytes: 3, took: .milliseconds(500))
    #expect(monitor.costs == WriteLedger.Costs(bytes: 10, milliseconds: 2000, images: 2))
    #expect(disk.saved.count == 2)
    disk.time += 86_400 * 2
    #expect(monitor.costs == WriteLedger.Costs())
  }

  @Test func `The disk is short if an image doesn't fit, beside removable bases`() {
    var rules = LifecyclePolicy().hibernate.disk
    rules.budget = .megabytes(100)
    rules.minFreePercent = 5
    #expect(!monitor.isShort(of: .megabytes(500), by: rules), "nothing could go away")
    read(reading(free: 900, bases: ["web": 50_000_000]))
    #expect(!monitor.isShort(of: .megabytes(20), by: rules))
    #expect(monitor.isShort(of: .megabytes(60), by: rules), "over the budget")
    rules.budget = .megabytes(5000)
    #expect(!monitor.isShort(of: .megabytes(60), by: rules))
    #expect(monitor.isShort(of: .megabytes(860), by: rules), "less than 5 % would be free")
    monitor.didRemoveImage(of: "web", keepsBase: false)
    #expect(!monitor.isShort(of: .megabytes(860), by: rules), "nothing could go away any more")
  }
}

@Suite("What hibernations took") struct HibernationCostsTests {
  private let world = SenseWorld()
  private let scratch: Scratch
  private let monitor: ImageDiskMonitor

  init() throws {
    scratch = try Scratch()
    monitor = ImageDiskMonitor(
      directory: scratch.path, ledger: WriteLedger(path: scratch.path + "/writes"),
      ImageDiskMonitor.Needs(
        read: { _ in }, send: { _ in }, save: { _ in }, time: { 1000 }, log: world.log))
  }

  private func summary(refusal: String? = nil) -> HibernationSummary {
    HibernationSummary(
      image: RestingImage(path: "/web.image"), moved: 9, imageLength: 100, written: 40,
      unchanged: 3, trackingRefusal: refusal, processes: 1, duration: .seconds(1))
  }

  @Test func `A hibernation is in the worker's report and in the day's costs`() throws {
    let worker = try world.add()
    monitor.record(summary(), of: worker, from: .megabytes(9), took: .milliseconds(1500))
    #expect(monitor.costs == WriteLedger.Costs(bytes: 40, milliseconds: 1500, images: 1))
    #expect(worker.lastHibernation?.written == 40 && worker.lastHibernation?.unchanged == 3)
    #expect(world.logged.isEmpty)
  }

  @Test func `Each reason for which writes can't be tracked is logged once`() throws {
    let (web, api) = (try world.add("web"), try world.add("api"))
    monitor.record(summary(refusal: "no UFFD"), of: web, from: .megabytes(9), took: .zero)
    monitor.record(summary(refusal: "no UFFD"), of: web, from: .megabytes(9), took: .zero)
    monitor.record(summary(refusal: "no UFFD"), of: api, from: .megabytes(9), took: .zero)
    monitor.record(summary(refusal: "a setuid program"), of: api, from: .megabytes(9), took: .zero)
    #expect(world.logged.count == 2)
    #expect(world.logged[0].contains("web: ") && world.logged[0].hasSuffix("no UFFD"))
    #expect(world.logged[1].contains("api: ") && world.logged[1].hasSuffix("a setuid program"))
  }

  @Test func `Evicted pages of files, and what keeps others in memory, are logged`() throws {
    let worker = try world.add()
    var summary = summary()
    summary.filePages = FilePages.Outcome(dropped: 1_000_000)
    monitor.record(summary, of: worker, from: .megabytes(9), took: .zero)
    summary.filePages?.refusal = SystemCallError("madvise", on: "pid 1", code: 1)
    monitor.record(summary, of: worker, from: .megabytes(9), took: .zero)
    #expect(world.logged.map { String($0.prefix { $0 != ":" }) } == ["info", "info", "notice"])
  }
}

@Suite("Looks at the images") struct ImageDiskTests {
  private let world = SenseWorld()
  private let scratch: Scratch
  private let loop: EventLoop
  private let jobs: LoopJobs

  init() throws {
    scratch = try Scratch()
    loop = try EventLoop(check: nil)
    jobs = try LoopJobs(
      loop, JobPool(name: "test-images", maxOrdinary: 256, endsAfter: .seconds(5)))
  }

  private func probe(
    _ workers: WorkerRegistry, didBegin: @escaping () -> Void = {}
  ) -> CoalescedProbe<ImageDisk> {
    let directory = scratch.path
    return ImageDisk.probe(
      jobs, directory: directory, workers: workers, sharedImages: nil,
      image: { "\(directory)/\($0).image" }, didBegin: didBegin)
  }

  @Test("A reader finds the file system's free space and the bases of running workers")
  func readings() throws {
    try world.add("web")
    try world.add("none")
    let base = Hibernator.basePath(of: scratch.path + "/web.image")
    try scratch.write(
      String(base.dropFirst(scratch.path.count + 1)), String(repeating: "x", count: 1234))
    var begun = 0
    let probe = probe(world.workers) { begun += 1 }
    var reading: ImageDisk?
    probe.ask { reading = $0 }
    try loop.turn { reading != nil }
    let disk = try #require(reading)
    #expect(disk.total > .zero && disk.bases == ["web": 1234] && disk.images.isEmpty)
    #expect(begun == 1)
  }

  @Test func `The image of a trim counts while some of the worker's memory is only there`() throws {
    let world = try SleepWorld(.background)
    world.workers[world.id] = world.worker
    let (sleep, probe) = (try world.makeSleep(), probe(world.workers))
    try scratch.write("web.image", String(repeating: "x", count: 77))
    for (missing, images) in [(UInt64(4096), ["web": Int64(77)]), (0, [:])] {
      sleep.missing = MissingBytes(missing, isTrimmed: true)
      var disk: ImageDisk?
      probe.ask { disk = $0 }
      try loop.turn { disk != nil }
      #expect(disk?.images == images)
    }
  }

  @Test func `Other sizes can be added to that of a disk without limits`() {
    for blocks in [UInt64.max, 1 << 62, 1 << 51] {
      #expect(ImageDisk.size(of: blocks, each: 4096) + .gigabytes(1 << 20) > .gigabytes(1 << 30))
    }
    #expect(ImageDisk.size(of: 10, each: 512) == ByteCount(5120))
  }
}
