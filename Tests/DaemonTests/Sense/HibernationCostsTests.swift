import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon
@testable import Hibernation

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

  @Test("Evicted pages of files, and what keeps others in memory, are logged each time")
  func files() throws {
    let worker = try world.add()
    var summary = summary()
    summary.filePages = FilePages.Outcome(dropped: 1_000_000)
    monitor.record(summary, of: worker, from: .megabytes(9), took: .zero)
    summary.filePages?.refusal = SystemCallError("madvise", on: "pid 1", code: 1)
    monitor.record(summary, of: worker, from: .megabytes(9), took: .zero)
    #expect(world.logged.map { String($0.prefix { $0 != ":" }) } == ["info", "info", "notice"])
  }
}
