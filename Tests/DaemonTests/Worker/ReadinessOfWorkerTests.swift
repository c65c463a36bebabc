import Glibc
import Lifecycle
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("The readiness of one run of a worker, for the daemon") struct ReadinessOfWorkerTests {
  private final class Notes {
    var refreshed: [String] = []
  }

  private let world: AdapterWorld
  private let notes = Notes()

  init() throws { world = try AdapterWorld() }

  private func launchingWorker() throws -> WorkerUnit {
    let runtime = try world.add("web", .terminated) { $0.readiness = .notify }
    runtime.process = try .forTest()
    world.driver.request(.start, runtime.id) { _ in }
    try #require(world.driver.state.state(of: runtime.id) == .launching)
    world.notes.forget()
    return runtime
  }

  /// For the run of this moment.
  private func host(_ runtime: WorkerUnit) throws -> ReadinessOfWorker {
    ReadinessOfWorker(
      worker: world.handle(runtime), process: try #require(runtime.process),
      jobs: world.services.jobs, probes: world.senses.probes,
      refreshMemory: { [world, notes] in
        notes.refreshed.append("\($0.id) after \(world.notes.events)")
      })
  }

  /// A worker that launches and has logged this, and the watch that searches for `listening` there.
  private func watchLog(_ text: String) throws -> (WorkerUnit, ReadinessWatch) {
    let runtime = try launchingWorker()
    let plan = LaunchPlan(
      name: "web", command: ["web"], directory: "/", environment: [:],
      logPath: try world.scratch.write("web.log", text))
    let process = try WorkerProcess.adopt(
      try #require(runtime.process).identity, plan: plan, opensMemory: false)
    runtime.process = process
    let watch = ReadinessWatch(
      Readiness(.logLine("listening"), worker: process), timers: world.timers,
      host: try host(runtime))
    return (runtime, watch)
  }

  @Test("A worker launches until the engine takes it for ready")
  func launching() throws {
    let runtime = try launchingWorker()
    let host = try host(runtime)
    #expect(host.isLaunching)
    world.driver.send(.ready(runtime.id))
    #expect(!host.isLaunching)
  }

  @Test("A run that was replaced by another doesn't launch, while the new one does")
  func replaced() throws {
    let runtime = try launchingWorker()
    let old = try host(runtime)
    runtime.process = try .forTest()
    #expect(try !old.isLaunching && host(runtime).isLaunching)
    runtime.process = nil
    #expect(!old.isLaunching)
  }

  @Test("When a run is ready, its memory is opened again before the engine hears of it")
  func ready() throws {
    let runtime = try launchingWorker()
    try host(runtime).isReady()
    #expect(notes.refreshed == ["web after []"])
    #expect(world.notes.all == [.ready(runtime.id)])
  }

  @Test("A line that a run has logged makes it ready")
  func found() throws {
    let (runtime, watch) = try watchLog("listening\n")
    watch.begin()
    try world.turn { !world.notes.all.isEmpty }
    #expect(world.notes.all == [.ready(runtime.id)] && notes.refreshed.count == 1)
    withExtendedLifetime(watch) {}
  }

  @Test("A line that is found in the log of an earlier run doesn't make the new run ready")
  func foundTooLate() throws {
    let (runtime, watch) = try watchLog("listening\n")
    let timers = world.timers.pending.count
    watch.begin()
    runtime.process = try .forTest()
    // The outcome has come when the watch waits for its next look.
    try world.turn { world.timers.pending.count > timers }
    world.timers.advance(by: .milliseconds(50))
    #expect(world.timers.pending.count == timers, "it doesn't look again")
    #expect(world.notes.all == [] && notes.refreshed == [])
    #expect(world.driver.state.state(of: runtime.id) == .launching)
    withExtendedLifetime(watch) {}
  }

  @Test("A question that a run has dropped isn't answered, and others are")
  func dropped() throws {
    let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    try #require(raw >= 0)
    let listener = Descriptor(owning: raw)
    try #require(withLoopback(0) { bind(raw, $0, $1) } == 0 && listen(raw, 5) == 0)
    let probe = Policy.Probe(
      .tcp(host: "127.0.0.1", port: localPort(of: raw)), timeout: .seconds(60))
    let host = try host(launchingWorker())
    var answers: [String] = []
    let drop = host.ask(probe) { answers.append("first \($0)") }
    _ = host.ask(probe) { answers.append("second \($0)") }
    drop()
    #expect(answers == [], "never before it returns")
    try world.turn { !answers.isEmpty }
    try world.settle()
    #expect(answers == ["second success"])
    withExtendedLifetime(listener) {}
  }

  @Test("A worker that was freed doesn't launch, and its log isn't searched")
  func freed() throws {
    let watch: ReadinessWatch
    let host: ReadinessOfWorker
    do {
      let (runtime, watching) = try watchLog("listening\n")
      (watch, host) = (watching, try self.host(runtime))
      world.workers.removeAll()
    }
    let timers = world.timers.pending.count
    #expect(!host.isLaunching)
    watch.begin()
    try world.settle()
    #expect(world.notes.all == [] && world.timers.pending.count == timers)
    host.isReady()
    #expect(notes.refreshed == [])
  }
}
