import Lifecycle
import Policy
import TestSupport
import Testing

@testable import Daemon

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

  @Test("The engine gets the disk's free space, with the bases of running workers counted as free")
  func reading() {
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

  @Test("A disk that doesn't answer counts as full, and its hang and its answer are logged once")
  func silent() {
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
    monitor.didWriteImage(of: "web", length: 10, bytes: 10, took: .seconds(1))
    disk.answer(reading())
    #expect(disk.readings.isEmpty && !isDone)
    monitor.didBeginReading()
    disk.answer(reading(images: ["web": 10]))
    #expect(disk.readings.map(\.images.bytes) == [10] && isDone)
  }

  @Test func `The bytes that are written to the disk in a day are counted and kept`() {
    monitor.didWriteImage(of: "web", length: 10, bytes: 7, took: .milliseconds(1500))
    monitor.didWriteImage(of: "web", length: 10, bytes: 3, took: .milliseconds(500))
    #expect(monitor.costs == WriteLedger.Costs(bytes: 10, milliseconds: 2000, images: 2))
    #expect(disk.saved.count == 2)
    disk.time += 86_400 * 2
    #expect(monitor.costs == WriteLedger.Costs())
  }

  @Test(
    "The disk is short if an image doesn't fit, by budget or free space, beside removable bases")
  func short() {
    var rules = DiskRules()
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
