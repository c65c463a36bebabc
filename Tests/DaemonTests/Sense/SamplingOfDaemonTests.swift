import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("What the daemon samples") struct SamplingOfDaemonTests {
  /// What was looked at, in its order.
  private final class Looks: ActivityLooking {
    var all: [String] = []
    func look(
      at runtime: WorkerUnit, _ process: WorkerProcess,
      then: @escaping (ActivityFindings?) -> Void
    ) { all.append("activity of \(runtime.id)") }
    func collectLatches() { all.append("traffic") }
  }

  private let world: AdapterWorld
  private let looks: Looks
  private let host: SamplingOfDaemon

  init() throws {
    let (world, looks) = (try AdapterWorld(), Looks())
    let (timers, driver) = (world.timers, world.driver)
    let memory = LearnedMemoryKeeper(path: world.scratch.path + "/memory", timers) { _, _, _, _ in
      looks.all.append("memory is saved")
    }
    memory.connect(driver, world.workers) { _ in
      [ExitRecord(at: 1, why: "exited", status: .exited(1), footprint: .zero)]
    }
    host = SamplingOfDaemon(
      .init(
        driver: driver,
        pressure: PressureMonitor(
          world.services.loop,
          PressureMonitor.Readings(
            memory: { MemoryInfo(total: 8000, available: 3000, swapFree: 500) },
            stall: { _ in nil }),
          send: { driver.send($0) }, log: { _, _ in }),
        activity: ActivitySampler(
          clock: timers, driver: driver, workers: world.workers, looks: looks,
          meter: world.senses.meter),
        logs: LogKeeper(timers) { id, _, then in
          looks.all.append("log of \(id)")
          then(.small, nil)
        } log: { _, _ in
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
          directory: "/images", ledger: WriteLedger(path: world.scratch.path + "/writes"),
          ImageDiskMonitor.Needs(
            look: { _ in looks.all.append("disk") }, send: { _ in }, save: { _ in },
            time: { 1000 }, log: { _, _ in })),
        hibernation: world.services.hibernation))
    (self.world, self.looks) = (world, looks)
  }

  private func add(_ state: WorkerState = .background) throws -> WorkerUnit {
    try world.add("web", state) { $0.output.maxSize = .megabytes(1) }
  }

  private func sample(_ runtime: WorkerUnit) -> [String] {
    looks.all = []
    host.sample(runtime)
    return looks.all
  }

  private static let everything = ["activity of web", "log of web", "kernel's kills"]

  @Test("A sample begins with the machine's memory and with the traffic since the last one")
  func machine() {
    host.beginSample()
    #expect(looks.all == ["traffic"])
    #expect(
      world.notes.all == [
        .memory(
          MemoryReading(
            total: ByteCount(8000), available: ByteCount(3000), someStall: nil, fullStall: nil,
            swapFree: ByteCount(500)))
      ])
  }

  @Test(
    "A running worker's activity, its log, and the kernel's kills of its processes are looked at")
  func running() throws {
    let runtime = try add()
    #expect(sample(runtime) == Self.everything)
    #expect(sample(runtime) == Self.everything)
  }

  @Test("The log of a worker that launches isn't touched: its readiness is searched for in it")
  func launching() throws {
    let runtime = try add(.terminated)
    runtime.process = try .forTest()
    world.driver.request(.start, runtime.id) { _ in }
    try #require(world.driver.state.state(of: runtime.id) == .launching)
    #expect(sample(runtime) == ["activity of web", "kernel's kills"])
    world.driver.send(.ready(runtime.id))
    #expect(sample(runtime) == Self.everything)
  }

  @Test("A worker without a process isn't looked at")
  func withoutProcess() throws {
    #expect(sample(try add(.terminated)) == [])
    let runtime = try add()
    runtime.process = nil
    runtime.endRun()
    #expect(sample(runtime) == [])
  }

  @Test("Nothing is looked at of a worker that hasn't run since its last sample")
  func atRest() throws {
    let runtime = try add()
    // Files of a cgroup, which no process is in.
    let files = try Scratch(["cgroup.events": "populated 1\n", "cpu.stat": "usage_usec 7\n"])
    let plan = LaunchPlan(
      name: "web", command: ["web"], directory: "/", environment: [:],
      cgroup: try WorkerCgroup(path: files.path, isExternal: true), logPath: "/logs/web.log")
    runtime.process = try WorkerProcess.adopt(
      try #require(runtime.process).identity, plan: plan, opensMemory: false)
    (runtime.sample.isUnchanged, runtime.sample.cpu) = (true, 7)
    #expect(sample(runtime) == [])
    try files.write("cpu.stat", "usage_usec 8\n")
    #expect(sample(runtime) == Self.everything, "it has run")
    try files.write("cpu.stat", "usage_usec 7\n")
    runtime.sample.isUnchanged = false
    #expect(sample(runtime) == Self.everything, "the last sample had found something new")
  }

  @Test("What was learned is saved only when that is due")
  func memory() throws {
    _ = try add()
    host.saveMemoryWhenDue()
    #expect(looks.all == [])
    world.timers.advance(by: MemoryKeeper.saveEvery)
    host.saveMemoryWhenDue()
    #expect(looks.all == ["memory is saved"])
  }

  @Test("The disk of the images is looked at, and no worker is for that")
  func disk() throws {
    _ = try add()
    host.sendDiskReading()
    host.dropOutdatedBases()
    #expect(looks.all == ["disk"] && world.notes.all == [])
  }
}
