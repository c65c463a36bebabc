import Glibc
import Policy
import Testing

@testable import Daemon

@Suite("The footprint meter") struct FootprintMeterTests {
  private let world = SenseWorld()
  private let source = PendingFootprints()
  private let meter: FootprintMeter
  private let results = Results()

  init() {
    meter = FootprintMeter(
      clock: world.timers, driver: world.driver, workers: world.workers, source: source,
      log: world.log)
  }

  private func measurement(
    _ megabytes: Int64, took: Duration = .milliseconds(1), refusal: String? = nil
  ) -> Measurement {
    Measurement(
      footprint: .megabytes(megabytes), anonymous: UInt64(megabytes) << 20,
      at: world.timers.now, took: took, refusal: refusal)
  }

  private final class Results {
    var all: [String] = []
    func record(_ name: String) -> (Measurement?) -> Void {
      { [unowned self] in
        all.append("\(name) \($0.map { "\($0.footprint.bytes >> 20)" } ?? "-")")
      }
    }
  }

  @Test func `A footprint that the engine requests is reported to it`() throws {
    let worker = try world.add()
    meter.measure(worker.id)
    #expect(world.drainEvents().isEmpty)
    source.pending.answer(measurement(7))
    #expect(world.drainEvents() == [.footprint(worker.id, .megabytes(7))])
    #expect(
      worker.sample.anonymous == 7 << 20 && worker.measuring.last?.footprint == .megabytes(7))
    meter.measure(worker.id)
    source.pending.answer(nil)
    #expect(world.drainEvents().isEmpty, "it has ended meanwhile")
  }

  @Test func `A suspension's measurement counts once, until the memory moves`() throws {
    let worker = try world.add()
    let first = measurement(5)
    world.timers.advance(by: .seconds(1))
    worker.measuring.didSuspend(first)
    meter.measure(worker.id)
    // An input that came while the worker fell asleep is reported to the engine first.
    #expect(world.drainEvents().isEmpty)
    world.timers.advance(by: .milliseconds(1))
    #expect(world.drainEvents() == [.footprint(worker.id, .megabytes(5))])
    #expect(worker.measuring.last?.at == first.at + .seconds(1))
    #expect(source.pending.count == 0 && worker.sample.anonymous == 5 << 20)
    #expect(worker.measuring.fromSuspension?.footprint == .megabytes(5))
    // A second caller wants to know whether memory was freed since.
    meter.measure(worker.id)
    #expect(worker.measuring.fromSuspension == nil)
    source.pending.answer(measurement(4))
    #expect(world.drainEvents() == [.footprint(worker.id, .megabytes(4))])
    worker.measuring.didSuspend(measurement(5))
    worker.measuring.didMoveMemory()
    meter.measure(worker.id)
    #expect(world.drainEvents().isEmpty && source.pending.count == 2)
  }

  @Test func `Callers during a measurement share the next one`() throws {
    let worker = try world.add()
    for name in ["a", "b", "c"] { meter.measure(worker, then: results.record(name)) }
    #expect(source.pending.count == 1)
    source.pending.answer(measurement(1))
    #expect(results.all == ["a 1"] && source.pending.count == 2)
    source.pending.answer(measurement(2))
    #expect(results.all == ["a 1", "b 2", "c 2"] && source.pending.count == 2)
  }

  @Test func `Two workers are measured at the same time`() throws {
    let (web, api) = (try world.add("web"), try world.add("api"))
    meter.measure(web, then: results.record("web"))
    meter.measure(api, then: results.record("api"))
    #expect(source.names == ["web", "api"])
    source.pending.answer(measurement(2), at: 1)
    source.pending.answer(measurement(1))
    #expect(results.all == ["api 2", "web 1"])
  }

  @Test func `Callers of a measurement that hangs continue after 3 s`() throws {
    let worker = try world.add()
    meter.measure(worker, then: results.record("a"))
    world.timers.advance(by: .seconds(1))
    meter.measure(worker, then: results.record("b"))
    world.timers.advance(by: .milliseconds(1999))
    #expect(results.all == [])
    world.timers.advance(by: .milliseconds(1))
    #expect(results.all == ["a -", "b -"])
    meter.measure(worker, then: results.record("c"))
    world.timers.advance(by: .seconds(3))
    #expect(results.all == ["a -", "b -", "c -"] && source.pending.count == 1)
    // The measurement ends after all. The next caller gets a new one.
    source.pending.answer(measurement(1))
    meter.measure(worker, then: results.record("d"))
    source.pending.answer(measurement(2))
    #expect(results.all.suffix(1) == ["d 2"] && results.all.count == 4)
  }

  @Test func `A caller whose measurement begins late and hangs gets no footprint`() throws {
    let worker = try world.add()
    meter.measure(worker, then: results.record("a"))
    meter.measure(worker, then: results.record("b"))
    world.timers.advance(by: .seconds(2))
    source.pending.answer(measurement(1))
    #expect(results.all == ["a 1"])
    world.timers.advance(by: .milliseconds(2999))
    #expect(results.all == ["a 1"])
    world.timers.advance(by: .milliseconds(1))
    #expect(results.all == ["a 1", "b -"])
    // No timer is left that would wake the daemon.
    #expect(world.timers.pending.isEmpty)
  }

  @Test func `The footprint of an ended run reaches neither callers nor the next run`() throws {
    let worker = try world.add()
    meter.measure(worker, then: results.record("a"))
    world.end(worker)
    try world.begin(worker, as: getppid())
    meter.measure(worker, then: results.record("b"))
    source.pending.answer(measurement(1))
    #expect(results.all == [] && worker.measuring.last == nil)
    source.pending.answer(measurement(2))
    #expect(results.all == ["b 2"])
    meter.measure(worker.id)
    world.workers[worker.id] = nil
    source.pending.answer(measurement(3))
    #expect(world.drainEvents().isEmpty, "it was removed")
  }

  @Test func `A footprint from before the memory was moved doesn't count`() throws {
    let worker = try world.add()
    meter.measure(worker, then: results.record("a"))
    worker.measuring.didMoveMemory()
    source.pending.answer(measurement(1))
    #expect(results.all == ["a -"] && worker.measuring.last == nil)
    #expect(worker.measuring.isDue(at: world.timers.now))
    meter.measure(worker, then: results.record("b"))
    source.pending.answer(measurement(2))
    #expect(results.all == ["a -", "b 2"])
  }

  @Test func `A rough footprint is logged once in a run`() throws {
    let worker = try world.add()
    for _ in 0..<2 {
      meter.measure(worker.id)
      source.pending.answer(measurement(1, refusal: "not permitted"))
    }
    #expect(world.logged == ["warning: web: footprint is an estimate: not permitted"])
    world.end(worker)
    try world.begin(worker)
    meter.measure(worker.id)
    source.pending.answer(measurement(1, refusal: "not permitted"))
    #expect(world.logged.count == 2)
  }

  @Test func `Regular measurements use a tenth of a processor at most`() throws {
    let web = try world.add("web")
    try world.add("api")
    try world.add("asleep", .suspended)
    meter.measureWhenDue(web)
    source.pending.answer(measurement(1, took: .milliseconds(100)))
    // Two workers run, so the budget is 100 ms of every 2 s.
    world.timers.advance(by: .milliseconds(1999))
    meter.measureWhenDue(web)
    #expect(source.pending.count == 1)
    world.timers.advance(by: .milliseconds(1))
    meter.measureWhenDue(web)
    #expect(source.pending.count == 2)
    meter.measureWhenDue(web)
    source.pending.answer(measurement(1, took: .seconds(100)))
    #expect(source.pending.count == 2, "one was under way")
    // A minute is the maximum.
    world.timers.advance(by: .seconds(60))
    meter.measureWhenDue(web)
    #expect(source.pending.count == 3)
  }
}
