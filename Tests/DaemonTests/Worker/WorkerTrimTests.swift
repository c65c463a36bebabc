import Hibernation
import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Trims and fills of a running worker") struct WorkerTrimTests {
  private let world: SleepWorld
  private let memory: FakeMemory
  private let sleep: WorkerSleep

  init() throws {
    world = try SleepWorld(.background)
    memory = world.memory
    sleep = try world.makeSleep()
    world.driver.send(.footprint(world.id, .megabytes(40)))
    world.notes.forget()
  }

  private static func summary(megabytes: Int64, swapped: Int64) -> TrimSummary {
    TrimSummary(
      mechanism: .processMadvise, residentBefore: 40 << 20, residentAfter: megabytes << 20,
      swapped: swapped << 20, stoppedFor: .milliseconds(20))
  }

  private static func outcome(megabytes: Int64, swapped: Int64) -> TrimOutcome {
    TrimOutcome(result: .success(summary(megabytes: megabytes, swapped: swapped)))
  }

  /// Requests a trim, and begins it as the engine's directive does.
  private func beginTrim() -> Recorded<Answer> {
    let answers = Recorded<Answer>()
    world.driver.request(.trim, world.id) { answers.all.append($0) }
    sleep.trim()
    return answers
  }

  /// The events that the engine has got, except requests.
  private var events: [Event] {
    world.events.filter { if case .request = $0 { false } else { true } }
  }

  /// The names of these events.
  private var outcomes: [String] { world.named.filter { $0 != "request" } }

  @Test func `A trim is reported to the engine, and the request is answered with what left RAM`() {
    let answers = beginTrim()
    #expect(memory.asked == ["trim"] && sleep.isBusy && answers.all.isEmpty)
    world.timers.advance(by: .milliseconds(100))
    memory.trimmed?(Self.outcome(megabytes: 4, swapped: 36))
    #expect(outcomes == ["trimmed"] && !sleep.isBusy)
    #expect(answers.all.map(\.code) == [.done])
    #expect(
      answers.all.first?.text
        == "web was trimmed: 40 MB → 4 MB in RAM, 36 MB in swap, 100 ms")
    #expect(world.logged == ["trimmed: 40 MB → 4 MB in RAM, 36 MB in swap, 100 ms"])
    let state = world.driver.state
    #expect(state.footprint(of: world.id) == .megabytes(40))
    #expect(state.swapped(of: world.id) == .megabytes(36))
    #expect(state.snapshot(of: world.id)?.trim?.last?.stoppedFor == .milliseconds(20))
  }

  @Test func `A worker isn't suspended while it is trimmed, and is suspended after it`() {
    _ = beginTrim()
    world.driver.request(.suspend, world.id) { _ in }
    #expect(world.driver.state.state(of: world.id) == .background)
    memory.trimmed?(Self.outcome(megabytes: 4, swapped: 36))
    // The engine asks for file locks before a suspension.
    world.driver.send(.fileLocks(world.id, held: 0))
    #expect(world.driver.state.state(of: world.id) == .suspending)
  }

  @Test func `A fill is reported to the engine with what is still in swap`() {
    _ = beginTrim()
    memory.trimmed?(Self.outcome(megabytes: 4, swapped: 36))
    let answers = Recorded<Answer>()
    world.driver.request(.fill, world.id) { answers.all.append($0) }
    sleep.fill()
    memory.filled?(.success(Self.summary(megabytes: 40, swapped: 0)))
    #expect(outcomes == ["trimmed", "filled"])
    #expect(answers.all.map(\.text) == ["web is filled: all of its memory is in RAM"])
    #expect(world.driver.state.swapped(of: world.id) == .zero)
  }

  @Test func `Requests fail when the worker ends during a trim`() throws {
    let answers = beginTrim()
    world.driver.send(.exited(world.id, .exited(0)))
    world.worker.endRun(world.watches)
    #expect(answers.all.map(\.code) == [.failed])
    world.notes.forget()
    memory.trimmed?(Self.outcome(megabytes: 4, swapped: 36))
    #expect(outcomes.isEmpty)
    // The next run isn't concerned either.
    world.worker.process = try .forTest("web")
    let next = try world.makeSleep()
    memory.trimmed?(Self.outcome(megabytes: 4, swapped: 36))
    #expect(outcomes.isEmpty && !next.isBusy)
  }

  @Test func `A worker without a process, or whose end has begun, isn't trimmed`() throws {
    let end = try WorkerEndWorld()
    world.worker.ending = end.ending
    end.ending.kill()
    _ = beginTrim()
    #expect(outcomes.isEmpty, "it is reported later")
    world.timers.advance(by: .zero)
    #expect(outcomes == ["trimFailed"] && memory.asked.isEmpty)
    world.worker.ending = nil
    world.worker.process = nil
    for act in [sleep.trim, sleep.fill] { act() }
    world.timers.advance(by: .zero)
    #expect(outcomes == ["trimFailed"] && memory.asked.isEmpty, "its end is reported instead")
  }

  @Test(
    "A failed trim is logged with its reason; only one that can't succeed later is permanent",
    arguments: [
      (HibernationError.Aftermath.intact, false), (.vanished, false), (.ineligible, true),
      (.unverifiable, true),
    ])
  func failed(_ aftermath: HibernationError.Aftermath, isPermanent: Bool) {
    let answers = beginTrim()
    let error = HibernationError(.checking, "there is no swap", aftermath: aftermath)
    memory.trimmed?(TrimOutcome(result: .failure(error)))
    guard case .trimFailed(world.id, let reason, isPermanent)? = events.last else {
      Issue.record("\(events)")
      return
    }
    #expect(reason.contains("there is no swap"))
    #expect(answers.all.map(\.code) == [.failed])
    #expect(world.logged.contains { $0.hasPrefix("can't be trimmed: ") })
    #expect(world.killed == (aftermath == .unverifiable ? [world.id] : []))
    #expect(world.driver.state.state(of: world.id) == .background)
  }

  @Test func `A footprint that is measured during a trim is dropped`() throws {
    let source = PendingFootprints()
    let lines = LoggedLines()
    let meter = FootprintMeter(
      clock: world.timers, driver: world.driver, workers: world.workers, source: source,
      log: lines.log)
    world.workers[world.id] = world.worker
    meter.measure(world.id)
    _ = beginTrim()
    memory.trimmed?(Self.outcome(megabytes: 4, swapped: 36))
    world.notes.forget()
    source.pending.answer(Self.measurement(megabytes: 70, swapped: 0, at: world.timers.now))
    #expect(outcomes.isEmpty)
    #expect(world.worker.measuring.isDue(at: world.timers.now))
    meter.measure(world.id)
    source.pending.answer(Self.measurement(megabytes: 40, swapped: 30, at: world.timers.now))
    #expect(
      events == [.swapped(world.id, .megabytes(30)), .footprint(world.id, .megabytes(40))])
    #expect(world.driver.state.snapshot(of: world.id)?.trim?.cameBack == .megabytes(6))
  }

  private static func measurement(
    megabytes: Int64, swapped: Int64, at now: Instant
  ) -> Measurement {
    Measurement(
      footprint: .megabytes(megabytes), swapped: swapped << 20,
      anonymous: UInt64(megabytes) << 20, at: now, took: .milliseconds(1))
  }
}
