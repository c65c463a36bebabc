import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("A request for memory to one run of a worker, as the daemon makes it")
struct SheddingOfWorkerTests {
  private final class Source: FootprintSource {
    let pending = Pending<Measurement?>()
    func measure(
      _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
      then: @escaping (Measurement?) -> Void
    ) { pending.add(then) }
  }

  private let world: AdapterWorld
  private let source = Source()
  private let scans = Pending<ProcessScan?>()
  private let meter: FootprintMeter
  private let scanner: ProcessScanner

  init() throws {
    world = try AdapterWorld()
    meter = FootprintMeter(
      clock: world.timers, driver: world.driver, workers: world.workers, source: source,
      log: { _, _ in })
    scanner = ProcessScanner(
      world.timers, launchedAt: { _ in .zero }, look: { [scans] in scans.add($0) })
  }

  /// For the run of this moment.
  private func host(_ runtime: WorkerUnit) throws -> SheddingOfWorker {
    SheddingOfWorker(
      worker: world.handle(runtime), process: try #require(runtime.process),
      loop: world.services.loop, meter: meter, scanner: scanner)
  }

  private func found(_ megabytes: Int64) -> Measurement {
    Measurement(footprint: .megabytes(megabytes), at: world.timers.now, took: .milliseconds(1))
  }

  @Test("A measurement of the run is passed on, and so is one that found nothing")
  func measured() throws {
    let host = try host(world.add())
    var results: [ByteCount?] = []
    host.measure { results.append($0) }
    #expect(results == [])
    source.pending.answer(found(7))
    host.measure { results.append($0) }
    source.pending.answer(nil)
    #expect(results == [.megabytes(7), nil])
  }

  @Test("A measurement that an earlier run waited for isn't passed on, and the new run's is")
  func measuredTooLate() throws {
    let runtime = try world.add()
    let old = try host(runtime)
    var results: [String] = []
    old.measure { _ in results.append("old") }
    runtime.process = try .forTest()
    let new = try host(runtime)
    new.measure { results.append("new \($0?.bytes ?? 0)") }
    source.pending.answer(found(100))
    #expect(results == [])
    source.pending.answer(found(7))
    #expect(results == ["new \(ByteCount.megabytes(7).bytes)"])
    // It asks only now: what is measured is the new run.
    old.measure { _ in results.append("old") }
    source.pending.answer(found(9))
    #expect(results.count == 1 && source.pending.isEmpty)
  }

  @Test("A run that has ended is neither measured nor searched for processes")
  func ended() throws {
    let runtime = try world.add()
    let host = try host(runtime)
    var count = 0
    host.measure { _ in count += 1 }
    host.findTree { _ in count += 1 }
    runtime.process = nil
    runtime.endRun()
    source.pending.answer(found(7))
    scans.answer(try ProcessScan.read())
    host.measure { _ in count += 1 }
    #expect(count == 0 && source.pending.count == 1)
  }

  @Test("The processes of the run are passed on, and those of an earlier run aren't")
  func tree() throws {
    let runtime = try world.add()
    let old = try host(runtime)
    var trees: [ProcessTree?] = []
    old.findTree { trees.append($0) }
    scans.answer(try ProcessScan.read())
    #expect(trees.count == 1 && trees.first??.contains(getpid()) == true)
    old.findTree { trees.append($0) }
    runtime.process = try .forTest()
    scans.answer(try ProcessScan.read())
    #expect(trees.count == 1)
  }

  @Test("A worker that was freed isn't measured, and gets no answer")
  func freed() throws {
    var runtime: WorkerUnit? = try world.add()
    let host = try host(try #require(runtime))
    world.workers.removeAll()
    runtime = nil
    var count = 0
    host.measure { _ in count += 1 }
    host.findTree { _ in count += 1 }
    scans.answer(try ProcessScan.read())
    #expect(count == 0 && source.pending.count == 0)
  }

  @Test("The footprint and the pressure are the engine's")
  func engine() throws {
    let runtime = try world.add()
    let host = try host(runtime)
    #expect(host.footprint == .zero && host.pressure == .normal)
    world.driver.send(.footprint(runtime.id, .megabytes(7)))
    world.driver.send(.pressureSet(.critical, for: .seconds(60)))
    #expect(host.footprint == .megabytes(7) && host.pressure == .critical)
  }

  @Test("A channel on which none of the worker's processes listens refuses the request")
  func refused() throws {
    let host = try host(world.add())
    #expect(throws: ShedRefusal.notCaught(signal: SIGUSR1)) {
      try host.ask(on: .signal(SIGUSR1), ProcessTree(processes: [])) { _ in }
    }
    #expect(throws: ShedRefusal.nobodyListens) { try host.ask(on: .notify, nil) { _ in } }
  }

  // MARK: a whole request

  private func attempt(_ runtime: WorkerUnit) throws -> ShedAttempt {
    let timers = world.timers
    return ShedAttempt(
      runtime.id, kind: .memoryWarning, until: timers.now + .seconds(5), on: nil,
      conversation: nil, http: ShedOverHTTP(timers, try FakeQuestions(timers).run), timers: timers,
      host: try host(runtime))
  }

  @Test("A request reports what was freed from its run")
  func reported() throws {
    let runtime = try world.add()
    let attempt = try attempt(runtime)
    attempt.begin()
    source.pending.answer(found(100))
    #expect(world.notes.all == [.shedAnswered(runtime.id)], "there is no channel to ask on")
    attempt.finish()
    source.pending.answer(found(60))
    #expect(
      world.notes.all.last
        == .shedFinished(runtime.id, before: .megabytes(100), after: .megabytes(60)))
  }

  @Test("A request whose run ends before its last measurement reports nothing of the next run")
  func replaced() throws {
    let runtime = try world.add()
    let attempt = try attempt(runtime)
    attempt.begin()
    source.pending.answer(found(100))
    attempt.finish()
    runtime.process = try .forTest()
    world.notes.forget()
    source.pending.answer(found(2))
    #expect(world.notes.all == [] && source.pending.isEmpty)
    #expect(!world.logged.contains("memory request"))
  }
}
