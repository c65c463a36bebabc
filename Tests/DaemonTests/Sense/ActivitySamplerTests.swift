import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import Testing

@testable import Daemon

@Suite("The activity sampler") struct ActivitySamplerTests {
  private final class Looks: ActivitySource {
    let pending = Pending<ActivityReading?>()

    func sample(
      _ worker: WorkerUnit, _ process: WorkerProcess, then: @escaping (ActivityReading?) -> Void
    ) { pending.add(then) }
    func collectLatches() {}
  }

  private let world = SenseWorld()
  private let looks = Looks()
  private let source = PendingFootprints()
  private let sampler: ActivitySampler

  init() {
    let meter = FootprintMeter(
      clock: world.timers, driver: world.driver, workers: world.workers, source: source,
      log: world.log)
    sampler = ActivitySampler(
      clock: world.timers, driver: world.driver, workers: world.workers, source: looks, meter: meter
    )
  }

  private static func automatic(_ configuration: inout WorkerConfiguration) {
    configuration.policy.foreground = ForegroundRules(mode: .activity, cpuBelow: 2)
  }

  /// Samples a worker a second later. The sample has these results.
  private func sample(
    _ worker: WorkerUnit, milliseconds: UInt64 = 0, kilobytes: UInt64 = 0,
    traffic: Bool? = nil, work: SignOfUse?? = .none, written: Written? = nil,
    hasClients: Bool? = nil
  ) throws -> [Event] {
    world.timers.advance(by: .seconds(1))
    #expect(sampler.sample(worker))
    var reading = ActivityReading(
      root: try #require(worker.process).identity, cpu: milliseconds * 1000,
      anonymous: kilobytes << 10, hasTraffic: traffic)
    if let work { reading.work = (work, WorkMeter()) }
    (reading.written, reading.hasClients) = (written, hasClients)
    #expect(looks.pending.answer(reading))
    return world.drainEvents()
  }

  private func measured(_ kilobytes: UInt64 = 0) {
    source.pending.answer(
      Measurement(
        footprint: ByteCount(Int64(kilobytes) << 10), anonymous: kilobytes << 10,
        at: world.timers.now, took: .milliseconds(1)))
    _ = world.drainEvents()
  }

  @Test func `The first sample compares nothing, and measures the footprint`() throws {
    let worker = try world.add("web", .background, Self.automatic)
    #expect(try sample(worker, milliseconds: 5000, traffic: true) == [])
    #expect(source.pending.count == 1)
  }

  @Test func `Traffic counts as activity, and so does a wrapped program's work`() throws {
    let worker = try world.add("web", .background, Self.automatic)
    _ = try sample(worker)
    #expect(try sample(worker, traffic: true) == [.activity(worker.id)])
    #expect(worker.sample.sign == .traffic)
    #expect(
      try sample(worker, traffic: false, work: .some(.output)) == [.activity(worker.id)])
    #expect(try sample(worker, traffic: false, work: .some(nil)) == [])
    #expect(worker.sample.sign == .output)
  }

  @Test func `Processor time from cpu_below on counts as work, and less doesn't`() throws {
    let worker = try world.add("web", .background, Self.automatic)
    _ = try sample(worker, milliseconds: 100)
    #expect(try sample(worker, milliseconds: 119) == [])
    #expect(try sample(worker, milliseconds: 139) == [.worked(worker.id)])
    // A process that had a share of the time has ended.
    #expect(try sample(worker, milliseconds: 50) == [])
    #expect(try sample(worker, milliseconds: 80) == [.worked(worker.id)])
    #expect(worker.sample.sign == .time)
  }

  @Test func `Processor time in bursts counts as work, although the mean is low`() throws {
    let worker = try world.add("poller", .background, Self.automatic)
    _ = try sample(worker)
    // 0.3 s in each 20 s are 1.5 %.
    var worked = 0
    for second in 1...60 {
      let reading = try sample(worker, milliseconds: UInt64(second / 20 * 300))
      if reading == [.worked(worker.id)] { worked += 1 }
    }
    #expect(worked == 3)
  }

  @Test func `A worker without clients is at work when it has written twice`() throws {
    let worker = try world.add("recorder", .background, Self.automatic)
    let line = Written(bytes: 20, logged: 0, reachesDisk: false)
    for _ in 1...4 { _ = try sample(worker) }
    #expect(try sample(worker, written: line, hasClients: false) == [])
    #expect(try sample(worker, hasClients: false) == [])
    #expect(try sample(worker, written: line, hasClients: false) == [.worked(worker.id)])
    #expect(worker.sample.sign == .writes)
    // Such writes of a server, to a pipe, don't count as work.
    let server = try world.add("web", .background, Self.automatic)
    for _ in 1...4 { _ = try sample(server) }
    for _ in 1...5 {
      #expect(try sample(server, written: line, hasClients: true) == [])
    }
  }

  @Test func `What a worker writes just after a change of its state isn't work`() throws {
    let worker = try world.add("recorder", .background, Self.automatic)
    let line = Written(bytes: 20, logged: 0, reachesDisk: true)
    #expect(try sample(worker, written: line, hasClients: false) == [])
    #expect(try sample(worker, written: line, hasClients: false) == [])
    _ = try sample(worker)
    #expect(try sample(worker, written: line, hasClients: false) == [])
    #expect(try sample(worker, written: line, hasClients: false) == [.worked(worker.id)])
  }

  @Test func `In manual mode only traffic that was read counts as activity`() throws {
    let worker = try world.add()
    _ = try sample(worker)
    #expect(try sample(worker, milliseconds: 900) == [])
    #expect(try sample(worker, milliseconds: 1800, traffic: true) == [.activity(worker.id)])
  }

  @Test func `A worker is measured again when 128 KiB of its memory were added or freed`() throws {
    let worker = try world.add()
    _ = try sample(worker, kilobytes: 1000)
    measured(1000)
    _ = try sample(worker, kilobytes: 1127)
    #expect(source.pending.count == 1)
    _ = try sample(worker, kilobytes: 1128)
    #expect(source.pending.count == 2)
    measured(1128)
    _ = try sample(worker, kilobytes: 1000)
    #expect(source.pending.count == 3)
  }

  @Test func `A measurement that isn't due yet is made at a later sample`() throws {
    let worker = try world.add()
    _ = try sample(worker, kilobytes: 1000)
    _ = try sample(worker, kilobytes: 2000)
    #expect(source.pending.count == 1, "one is under way")
    measured(1000)
    _ = try sample(worker, kilobytes: 2000)
    #expect(source.pending.count == 2)
  }

  @Test func `The outcome of a sample is dropped if the worker sleeps by then`() throws {
    let worker = try world.add("web", .suspended, Self.automatic)
    _ = try sample(worker, milliseconds: 100, traffic: true)
    #expect(try sample(worker, milliseconds: 900, traffic: true) == [])
    #expect(worker.sample.at == .zero && source.pending.count == 0)
  }

  @Test func `A sample of a worker that has ended, and a lost sample, have no result`() throws {
    let worker = try world.add()
    let process = try #require(worker.process)
    let reading = ActivityReading(root: process.identity, cpu: 1, anonymous: 1, hasTraffic: true)
    var answers: [Bool] = []
    func read() { sampler.readActivity(of: worker) { answers.append($0 != nil) } }

    read()
    looks.pending.answer(reading)
    read()
    looks.pending.answer(nil)
    #expect(answers == [true, false])
    read()
    world.end(worker)
    looks.pending.answer(reading)
    read()
    #expect(answers == [true, false, false, false] && looks.pending.isEmpty)
    // The sample is of an earlier run.
    try world.begin(worker, as: getppid())
    read()
    looks.pending.answer(reading)
    read()
    world.workers[worker.id] = nil
    looks.pending.answer(reading)
    #expect(answers.dropFirst(4) == [false, false])
  }

  @Test func `Two samples at the same time are both answered`() throws {
    let (web, api) = (try world.add("web"), try world.add("api"))
    var answers: [String] = []
    for worker in [web, api] {
      sampler.readActivity(of: worker) { answers.append("\(worker.id) \($0?.cpu ?? 0)") }
    }
    let root = try #require(web.process).identity
    looks.pending.answer(ActivityReading(root: root, cpu: 2, anonymous: 0), at: 1)
    looks.pending.answer(ActivityReading(root: root, cpu: 1, anonymous: 0))
    #expect(answers == ["api 2", "web 1"])
  }
}
