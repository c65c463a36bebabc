import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("What clients get of the daemon, and what they change") struct ControlOfDaemonTests {
  private let world: AdapterWorld
  private let reload = ReloadNotes()

  private final class ReloadNotes {
    var outcomes: [ReloadOutcome] = []
    /// The reloader doesn't keep it alive.
    var host: ReloadOfDaemon?
  }

  init() throws { world = try AdapterWorld() }

  private func control(_ role: DaemonRole = .daemon()) throws -> ControlOfDaemon {
    let chronicle = try Chronicle(
      JournalConfiguration(), version: "1", directory: world.state.journal,
      reports: world.state.reports, log: { _, _ in })
    let configuration = ConfigurationInForce(
      DaemonConfiguration(policy: LifecyclePolicy(name: "test")))
    let schedules = ScheduleMonitor(
      services: world.services, state: world.state, driver: world.driver, workers: world.workers,
      returning: world.returning)
    let reloading = ReloadOfDaemon(
      .init(
        services: world.services, driver: world.driver, workers: world.workers, phase: world.phase,
        requests: world.requests, configuration: configuration,
        read: { ParseResult(value: nil, diagnostics: []) }, chronicle: chronicle,
        pressure: world.pressure, supervision: world.supervision, starter: world.starter,
        declared: world.declared, listening: world.listening, schedules: schedules,
        encryption: world.senses.encryption, restarts: world.restarts,
        returning: world.returning))
    reload.host = reloading
    return ControlOfDaemon(
      .init(
        services: world.services, driver: world.driver, workers: world.workers, phase: world.phase,
        ending: world.ending, requests: world.requests, role: role, version: "1.2.3",
        freezer: CodedText("sigstop", "SIGSTOP"), state: world.state, configuration: configuration,
        chronicle: chronicle, snapshots: world.snapshots, jetsam: world.jetsam,
        learnedMemory: world.learnedMemory, planner: world.planner, senses: world.senses,
        pressure: world.pressure, restarts: world.restarts, starter: world.starter,
        supervision: world.supervision,
        firstMoments: FirstMoments(
          timers: world.timers, driver: world.driver, workers: world.workers,
          requests: world.requests, restarts: world.restarts, scanner: world.senses.scanner),
        schedules: schedules, reloads: world.reloads, reloader: reloading.makeReloader(),
        externals: world.externals, rules: world.rules, wrappers: world.wrappers, cgroups: nil,
        socket: world.socket))
  }

  private final class Program: CallersProgram {
    let inheritance = Inheritance(firstArgument: 0)
    let logPath: String? = nil
    let wakes = 3
    var host: String? { "nvim" }
    var directory: String? { "/home/me/shop" }
    func hasLaunched() {}
    func hasEnded(_ status: Lifecycle.ExitStatus) {}
    func hasChanged(_ transition: Transition) {}
  }

  // MARK: reports

  @Test("Nothing is reported of a worker that isn't known")
  func unknown() throws {
    let control = try control()
    #expect(control.facts(of: WorkerID("web")) == nil && control.wrappedReports(at: .zero).isEmpty)
    #expect(!control.isAlive(WorkerID("web")) && !control.leads(WorkerID("web")))
  }

  @Test("A worker is shown with what it was launched with, and with what has changed since")
  func facts() throws {
    let control = try control()
    let runtime = try world.add()
    runtime.noteLaunch()
    runtime.configuration.command = ["web", "--new"]
    let facts = try #require(control.facts(of: runtime.id))
    #expect(facts.command == ["web", "--serve"] && facts.changedSinceLaunch == ["command"])
    #expect(facts.isDeclared && !facts.isAdopted && facts.process === runtime.process)
    #expect(facts.log == "/logs/web.log", "the file that it was launched to write to")
    runtime.process = nil
    #expect(control.facts(of: runtime.id)?.log == world.state.log(of: "web"))
  }

  @Test("An adopted worker's log is its supervisor's")
  func external() throws {
    let control = try control()
    let runtime = try world.add()
    runtime.external = ExternalWorker(mayBeTerminated: false)
    let facts = try #require(control.facts(of: runtime.id))
    #expect(facts.log == nil && facts.isAdopted && facts.wrapper == nil)
  }

  @Test("A wrapper's program has no log where it has its caller's output, and names the wrapper")
  func wrapper() throws {
    let control = try control(
      .standingFor(Program(), log: nil, pace: SamplingPace(), sharedImages: { 0 }))
    let runtime = try world.add()
    let facts = try #require(control.facts(of: runtime.id))
    #expect(facts.log == nil && facts.wrapper?.pid == getpid() && facts.wrapper?.wakes == 3)
    #expect(control.policyFacts().isWrapper)
  }

  @Test("A worker's earlier ends and what is planned for it are shown")
  func plans() throws {
    let control = try control()
    let runtime = try world.add("web", .terminated) { $0.restart = RestartWorld.rules }
    world.hasEnded(runtime, RestartWorld.failure)
    let plans = try #require(control.facts(of: runtime.id)).plans
    #expect(plans.exits.count == 1)
    guard case .backingOff = plans.restart else {
      Issue.record("\(String(describing: plans.restart))")
      return
    }
  }

  @Test("A snapshot that was never kept is answered with nothing")
  func noSnapshot() throws {
    var found: [Bool] = []
    try control().loadSnapshot(of: "web") { found.append($0 != nil) }
    #expect(found == [])
    try world.turn { !found.isEmpty }
    #expect(found == [false])
  }

  @Test("The journal's place is reported when everything until then is in its files")
  func journal() throws {
    let control = try control()
    var places: [JournalPlace] = []
    control.saveJournal { places.append($0) }
    #expect(places.isEmpty)
    try world.turn { !places.isEmpty }
    #expect(places.count == 1 && places[0].reports == world.state.reports)
  }

  // MARK: verbs

  @Test("`run` makes a worker that no configuration declares, and asks the engine to start it")
  func run() throws {
    let control = try control()
    var answers: [Answer] = []
    control.launch(.forTest("job"), environment: ["A": "1"]) { answers.append($0) }
    let runtime = try #require(world.workers[WorkerID("job")])
    #expect(!runtime.isDeclared && runtime.environment == ["A": "1"])
    #expect(world.notes.events == ["added", "request"] && answers.isEmpty)
    #expect(world.driver.state.state(of: runtime.id) == .launching)
    world.driver.send(.launchFailed(runtime.id, "no such file"))
    #expect(answers.map(\.code) == [.failed])
  }

  @Test("A start is one of the workers that it depends on, too")
  func start() throws {
    let control = try control()
    try world.add("db", .terminated)
    let id = try world.add("web", .terminated) { $0.dependsOn = [Dependency("db")] }.id
    control.start(id, .start) { _ in }
    #expect(world.asked == ["restart db"])
  }

  @Test("A reload that can't be read is refused, and the workers stay")
  func reloadFails() throws {
    let control = try control()
    try world.add()
    control.reload(allowEmpty: false) { [reload] in reload.outcomes.append($0) }
    try world.turn { !reload.outcomes.isEmpty }
    #expect(!reload.outcomes[0].isDone && world.workers.count == 1)
  }

  @Test("`shutdown` and `leave` begin the daemon's end")
  func ends() throws {
    let control = try control()
    #expect(!control.isEnding && !control.isLeaving)
    try world.add("web")
    control.leave()
    #expect(control.isLeaving)
    control.end()
    #expect(control.isEnding && !control.isLeaving)
  }
}
