import Lifecycle
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("Regular sampling") struct RegularSamplingTests {
  /// Records what was sampled, in order.
  private final class Looks: ActivitySource {
    var all: [String] = []
    /// Called at the first sample of a worker.
    var atFirst: ((WorkerUnit) -> Void)?
    func sample(
      _ worker: WorkerUnit, _ process: WorkerProcess, then: @escaping (ActivityReading?) -> Void
    ) {
      all.append("activity of \(worker.id)")
      let first = atFirst
      atFirst = nil
      first?(worker)
    }
    func collectLatches() { all.append("traffic") }
    func count(_ source: String) -> Int { all.count { $0 == source } }
  }

  private let world: AdapterWorld
  private let looks = Looks()
  private let memory: LearnedMemoryKeeper
  /// Sampling continues until the end of the test.
  private let begun = Recorded<RegularSampling>()

  init() throws {
    let world = try AdapterWorld()
    memory = LearnedMemoryKeeper(path: "/nowhere/memory", world.timers) { [looks] _, _, _, _ in
      looks.all.append("memory is saved")
    }
    memory.connect(world.driver, world.workers) { _ in
      [ExitRecord(at: 1, why: "exited", status: .exited(1), footprint: .zero)]
    }
    self.world = world
  }

  @discardableResult
  private func begin(_ pace: SamplingPace = SamplingPace()) -> RegularSampling {
    let (looks, timers, driver) = (looks, world.timers, world.driver)
    let sampling = RegularSampling(
      pace: pace,
      pressure: PressureMonitor(
        world.services.loop,
        PressureMonitor.Readings(
          memory: {
            looks.all.append("machine")
            return MemoryInfo(total: 8000, available: 3000, swapFree: 500)
          }, stall: { _ in nil }),
        send: { driver.send($0) }, log: { _, _ in }),
      activity: ActivitySampler(
        clock: timers, driver: driver, workers: world.workers, source: looks,
        meter: world.senses.meter),
      logs: LogKeeper(timers, log: { _, _ in }) { id, _, _, then in
        looks.all.append("log of \(id)")
        then(.small, nil)
      },
      kernelKills: KernelKillWatch(
        clock: timers, driver: driver, jetsam: world.jetsam,
        counts: KernelKillCounts(
          inGroup: { _ in
            looks.all.append("kernel's kills")
            return 0
          }, onMachine: { nil }), log: { _, _ in }),
      learnedMemory: memory,
      imageDisk: ImageDiskMonitor(
        directory: "/images", ledger: WriteLedger(path: "/nowhere/writes"),
        ImageDiskMonitor.Needs(
          read: { _ in looks.all.append("disk") }, send: { _ in },
          removeOutdated: { looks.all.append("bases") }, save: { _ in }, time: { 1000 },
          log: { _, _ in })))
    begun.all.append(sampling)
    sampling.sampleRegularly()
    return sampling
  }

  /// What the next sample of the only worker reads.
  private func nextSample(_ sampling: RegularSampling) -> [String] {
    looks.all = []
    sampling.sampleRegularly()
    let others = ["machine", "traffic", "disk", "bases", "memory is saved"]
    return looks.all.filter { !others.contains($0) }
  }

  private static let everything = ["activity of web", "log of web", "kernel's kills"]

  private func add(_ state: WorkerState = .background) throws -> WorkerUnit {
    try world.add("web", state) { $0.output.maxSize = .megabytes(1) }
  }

  // MARK: times

  @Test func `A sample reads the machine's memory, running workers, and what is due`() throws {
    _ = try add()
    try world.add("asleep", .suspended)
    try world.add("deep", .hibernated)
    try world.add("ended", .terminated)
    begin()
    #expect(looks.all == ["machine", "traffic"] + Self.everything + ["disk"])
    #expect(
      world.notes.all.first
        == .memory(
          MemoryReading(
            total: ByteCount(8000), available: ByteCount(3000), someStall: nil, fullStall: nil,
            swapFree: ByteCount(500))))
    looks.all = []
    world.timers.advance(by: .seconds(1))
    #expect(looks.all == ["machine", "traffic"] + Self.everything)
  }

  @Test func `While all workers sleep the daemon wakes only for the machine's samples`() throws {
    for number in 0..<50 { try world.add("w\(number)", .hibernated) }
    begin()
    looks.all = []
    for _ in 0..<29 {
      #expect(world.timers.pending == [.seconds(1)])
      world.timers.advance(by: .seconds(1))
    }
    #expect(looks.all.count == 2 * 29 && Set(looks.all) == ["machine", "traffic"])
  }

  @Test func `A worker that is woken during a sample is sampled next, and only once a time`()
    throws
  {
    _ = try add()
    let sampling = begin()
    looks.all = []
    looks.atFirst = { sampling.sampleAtOnce($0) }
    world.timers.advance(by: .seconds(1))
    #expect(looks.count("activity of web") == 2)
    world.timers.advance(by: .seconds(10))
    #expect(looks.count("machine") == 12)
  }

  @Test func `The disk is read once in sixty samples`() throws {
    begin()
    world.timers.advance(by: .seconds(59))
    #expect(looks.count("disk") == 1)
    world.timers.advance(by: .seconds(1))
    #expect(looks.count("disk") == 2)
  }

  @Test func `Outdated bases are searched for once an hour`() throws {
    begin(SamplingPace(resting: .seconds(100)))
    world.timers.advance(by: .seconds(3600))
    #expect(looks.count("bases") == 0)
    world.timers.advance(by: .seconds(100))
    #expect(looks.count("bases") == 1)
    world.timers.advance(by: .seconds(3600))
    #expect(looks.count("bases") == 1)
    world.timers.advance(by: .seconds(100))
    #expect(looks.count("bases") == 2)
  }

  @Test func `What was learned is saved only when that is due`() throws {
    _ = try add()
    begin()
    #expect(looks.count("memory is saved") == 0)
    world.timers.advance(by: LearnedMemoryKeeper.saveEvery)
    #expect(looks.count("memory is saved") == 1)
  }

  @Test func `A wrapper samples less often while its program sleeps`() throws {
    let worker = try world.add("web", .suspended)
    let sampling = begin(
      SamplingPace(running: .milliseconds(100), resting: .seconds(5)))
    #expect(world.timers.pending == [.seconds(5)])
    worker.sample.cpu = 5
    worker.sample.at = world.timers.now
    looks.all = []
    sampling.sampleAtOnce(worker)
    sampling.sampleAtOnce(worker)
    #expect(worker.sample.at == .zero && worker.sample.cpu == 0)
    // One sample is planned, because the old one was cancelled.
    #expect(world.timers.pending == [.zero])
    world.driver.send(.resumed(worker.id, .zero))
    world.timers.advance(by: .zero)
    #expect(looks.count("machine") == 1 && world.timers.pending.count == 1)
  }

  @Test func `Two calls to begin sampling start one timer`() {
    begin().sampleRegularly()
    #expect(world.timers.pending == [.seconds(1)])
  }

  // MARK: contents

  @Test func `The log of a launching worker isn't touched: readiness may be in it`() throws {
    let worker = try add(.terminated)
    let sampling = begin()
    worker.process = try .forTest()
    world.driver.request(.start, worker.id) { _ in }
    try #require(world.driver.state.state(of: worker.id) == .launching)
    #expect(nextSample(sampling) == ["activity of web", "kernel's kills"])
    world.driver.send(.ready(worker.id))
    #expect(nextSample(sampling) == Self.everything)
  }

  @Test func `A worker without a process isn't sampled`() throws {
    let worker = try add()
    let sampling = begin()
    worker.process = nil
    worker.endRun()
    #expect(nextSample(sampling) == [])
  }

  @Test func `Nothing is read of a worker that hasn't run since its last sample`() throws {
    let worker = try add()
    // The files of a cgroup that no process is in.
    let files = try Scratch(["cgroup.events": "populated 1\n", "cpu.stat": "usage_usec 7\n"])
    worker.process = try .forTest(in: WorkerCgroup(path: files.path, isExternal: true))
    (worker.sample.isUnchanged, worker.sample.cpu) = (true, 7)
    let sampling = begin()
    #expect(nextSample(sampling) == [])
    try files.write("cpu.stat", "usage_usec 8\n")
    #expect(nextSample(sampling) == Self.everything, "it has run")
    try files.write("cpu.stat", "usage_usec 7\n")
    worker.sample.isUnchanged = false
    #expect(nextSample(sampling) == Self.everything, "the last sample had found something new")
  }
}
