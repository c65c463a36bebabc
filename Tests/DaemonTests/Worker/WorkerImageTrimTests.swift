import Glibc
import Lifecycle
import Testing

@testable import Daemon
@testable import Hibernation

@Suite("Trims that move memory to an image") struct WorkerImageTrimTests {
  private let world: SleepWorld
  private let memory: FakeMemory
  private let sleep: WorkerSleep

  init() throws {
    world = try SleepWorld(.background)
    memory = world.memory
    sleep = try world.makeSleep()
    world.workers[world.id] = world.worker
    world.driver.send(.footprint(world.id, .megabytes(40)))
    world.notes.forget()
  }

  private func beginTrim() {
    world.driver.request(.trim, world.id) { _ in }
    sleep.trim()
  }

  /// Ends a trim that has left memory in an image of 9 MB. Some of it is back in RAM when the
  /// daemon gets the outcome.
  private func endTrim(inImage bytes: UInt64 = 36 << 20, cameBack: Int = 0) {
    let missing = MissingBytes(bytes, isTrimmed: true)
    var summary = TrimSummary(
      mechanism: .userfaultfd, residentBefore: 40 << 20, residentAfter: 4 << 20,
      swapped: 36 << 20, missing: missing, stoppedFor: .milliseconds(20))
    summary.written = 5 << 20
    missing.didFill(cameBack)
    memory.trimmed?(TrimOutcome(result: .success(summary), imageLength: 9 << 20))
  }

  private var outcomes: [String] { world.named.filter { $0 != "request" } }

  @Test func `A trim to an image is reported with the image, and what was written of it counts`() {
    beginTrim()
    endTrim()
    #expect(outcomes == ["trimmed"])
    #expect(world.logged == ["trimmed: 40 MB → 4 MB in RAM, 36 MB in its image, 0 s"])
    #expect(world.driver.state.snapshot(of: world.id)?.trim?.last?.inImage == .megabytes(36))
    #expect(world.worker.bytesInTrimImage == 36 << 20)
    #expect(world.worker.imageBytesWritten == 5 << 20)
    #expect(world.sleeps.imageDisk.costs.bytes == 5 << 20)
    #expect(world.disk.count == 1)
  }

  @Test func `Memory that has come back from the image at once isn't reported as in swap`() {
    beginTrim()
    endTrim(cameBack: 2 << 20)
    #expect(world.logged == ["trimmed: 40 MB → 4 MB in RAM, 36 MB in its image, 0 s"])
  }

  @Test func `A trim gets the rules of the worker's policy, and what prevents an image`() {
    world.worker.configuration.policy.trim.mechanism = .userfaultfd
    world.worker.configuration.policy.hibernate.compressionLevel = 7
    beginTrim()
    #expect(memory.trimOrder?.mechanism == .userfaultfd)
    #expect(memory.trimOrder?.image.rules.compressionLevel == 7)
    #expect(memory.trimOrder?.diskObstacle == nil)
    endTrim()
    world.driver.send(
      .disk(
        DiskReading(
          total: .gigabytes(1), free: .megabytes(1), images: .zero, writtenToday: .zero)))
    world.driver.send(.swapped(world.id, .zero))
    world.driver.send(.footprint(world.id, .megabytes(40)))
    beginTrim()
    #expect(memory.trimOrder?.diskObstacle?.contains("hibernate.disk.min_free") == true)
  }

  @Test func `A trimmed worker is measured at once, with its image as memory out of RAM`() {
    beginTrim()
    endTrim()
    let source = PendingFootprints()
    let meter = FootprintMeter(
      clock: world.timers, driver: world.driver, workers: world.workers, source: source,
      log: { _, _ in })
    meter.measure(world.id)
    #expect(source.missing.map(\.?.bytes) == [36 << 20])
    let (trimmed, resumed) = (MissingBytes(1 << 40, isTrimmed: true), MissingBytes(1 << 40))
    let outside = Measurement.measure([getpid()], trimmed)
    #expect(outside.swapped >= 1 << 40 && outside.footprint.bytes >= 1 << 40)
    let returning = Measurement.measure([getpid()], resumed)
    #expect(returning.swapped < 1 << 40 && returning.footprint.bytes >= 1 << 40)
  }

  private func suspend(keeping missing: MissingBytes?) {
    beginTrim()
    endTrim()
    sleep.suspend()
    #expect(memory.asked.last == "suspend, trimmed")
    memory.stop(with: world.inputs, missing: missing)
  }

  @Test func `A trimmed worker whose memory stays in the image is resumed with it`() throws {
    suspend(keeping: MissingBytes(36 << 20, isTrimmed: true))
    #expect(world.worker.bytesInTrimImage == 36 << 20)
    sleep.hibernate()
    memory.end(hibernation: .failure(HibernationError(.seizing, "busy")))
    sleep.resume()
    #expect(memory.asked.last == "thaw, stopped")
    memory.thawed?(nil)
    #expect(world.worker.bytesInTrimImage == 36 << 20)
  }

  @Test func `A suspended worker that an earlier daemon trimmed is recovered first`() throws {
    sleep.adopt(asleepWith: nil)
    sleep.missing = MissingBytes(36 << 20, isTrimmed: true)
    sleep.hibernate()
    memory.end(hibernation: .failure(HibernationError(.seizing, "busy")))
    sleep.resume()
    #expect(memory.asked.last == "recover")
    var summary = ResumeSummary.forTest
    summary.missing = MissingBytes(30 << 20, isTrimmed: true)
    summary.backgroundFill = 30 << 20
    memory.recovered?(RecoveryOutcome(result: .success(summary), image: nil))
    #expect(world.worker.bytesInTrimImage == 30 << 20)
  }

  @Test func `When such a worker has been hibernated, it isn't trimmed any more`() throws {
    suspend(keeping: MissingBytes(36 << 20, isTrimmed: true))
    sleep.hibernate()
    memory.evict(to: "/image")
    #expect(world.worker.missing == nil)
    sleep.resume()
    #expect(memory.asked.last == "restore /image")
  }

  @Test func `If a suspension has moved what is in the image back, the disk is read`() throws {
    suspend(keeping: nil)
    #expect(world.worker.missing == nil && world.disk.count == 3)
    sleep.resume()
    #expect(memory.asked.last == "thaw")
  }

  @Test func `After a fill nothing is in the image, and the disk is read`() {
    beginTrim()
    endTrim()
    world.driver.request(.fill, world.id) { _ in }
    sleep.fill()
    memory.filled?(
      .success(
        TrimSummary(
          mechanism: nil, residentBefore: 4 << 20, residentAfter: 40 << 20, swapped: 0)))
    #expect(outcomes == ["trimmed", "filled"])
    #expect(world.worker.missing == nil && world.disk.count == 2)
  }

  @Test func `A lost trim is reported with its reason, and a later suspension is careful`() {
    beginTrim()
    endTrim()
    sleep.didLoseTrim("it forks often (before)")
    #expect(outcomes == ["trimmed"], "the memory of this trim is in the image")
    sleep.missing = MissingBytes(0, isTrimmed: true)
    sleep.didLoseTrim("it forks often")
    #expect(outcomes == ["trimmed", "trimLost"])
    #expect(world.logged.last == "all of its trimmed memory came back: it forks often")
    #expect(world.worker.mayHaveTrimImage && world.disk.count == 2)
    #expect(world.driver.state.snapshot(of: world.id)?.trim?.loss?.reason == "it forks often")
  }

  @Test func `A loss that is reported before the outcome of the trim counts after it`() {
    beginTrim()
    sleep.didLoseTrim("it forks often")
    #expect(outcomes == [])
    endTrim(inImage: 0)
    #expect(outcomes == ["trimmed", "trimLost"])
  }

  @Test func `A loss that is reported during the next trim doesn't concern that one`() {
    beginTrim()
    sleep.didLoseTrim("it forks often")
    endTrim()
    #expect(outcomes == ["trimmed"] && world.worker.bytesInTrimImage == 36 << 20)
  }

  @Test func `A loss that is reported after the worker's end is dropped`() {
    beginTrim()
    endTrim()
    world.driver.send(.exited(world.id, .exited(0)))
    world.worker.endRun(world.watches)
    sleep.didLoseTrim("it forks often")
    #expect(outcomes == ["trimmed", "exited"])
  }

  @Test func `After a lost outcome of a trim, memory may be in an image`() {
    beginTrim()
    memory.loseOutcome()
    world.timers.advance(by: .seconds(60))
    #expect(outcomes == ["trimFailed"] && world.worker.mayHaveTrimImage)
    sleep.suspend()
    #expect(memory.asked.last == "suspend, trimmed")
  }
}
