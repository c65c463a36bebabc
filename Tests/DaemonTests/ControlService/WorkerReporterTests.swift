import Control
import Glibc
import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("What `ps` and `status` report of one worker") struct WorkerReporterTests {
  private let timers = FakeLoop()
  private let driver: EngineDriver
  private let id = WorkerID("web")

  init() { driver = .forTest(timers, EventNotes()) }

  /// - Parameter facts: nil if the daemon has removed the worker.
  private func report(_ facts: WorkerFacts?) throws -> WorkerReport {
    let snapshot = try #require(driver.state.snapshot(of: id, at: timers.now))
    return WorkerReporter(snapshot: snapshot, facts: facts, scan: nil, now: timers.now)
      .report(withGroup: true)
  }

  /// Adopts the worker in the state in which an earlier daemon has left it.
  private func adopt(_ state: WorkerState) {
    driver.send(.adopted(id, WorkerProfile(policy: LifecyclePolicy(name: "test")), state))
  }

  private func report(
    _ state: WorkerState = .background, _ change: (inout WorkerFacts) -> Void = { _ in }
  ) throws -> WorkerReport {
    adopt(state)
    var facts = WorkerFacts(worker: .forTest("web"))
    change(&facts)
    return try report(facts)
  }

  @Test func `The report of a worker without a process has no values that need one`() throws {
    let report = try report()
    #expect(report.name == "web" && report.state == "background" && report.policy == "test")
    #expect(report.pid == nil && report.processes == 0 && report.cgroup == nil)
    #expect(report.exits == nil && report.restarts == nil)
    #expect(report.isAdopted == nil && report.baseSize == nil)
  }

  @Test func `What the daemon knows of a worker is in its report`() throws {
    let report = try report { facts in
      facts.worker.external = ExternalWorker()
      facts.baseSize = 7
      facts.worker.lastHibernation = LastHibernation(
        written: 5, unchanged: 6, seconds: 0.25, footprintBefore: .megabytes(90))
    }
    #expect(report.isAdopted == true && report.baseSize == 7 && report.hibernateWritten == 5)
    #expect(report.hibernateUnchanged == 6 && report.hibernateSeconds == 0.25)
  }

  @Test func `The time asleep and the last wake are in a worker's report`() throws {
    adopt(.background)
    timers.advance(by: .seconds(1))
    driver.send(.request(Request(id: 1, verb: .suspend, worker: id)))
    driver.send(.fileLocks(id, held: 0))
    driver.send(.suspended(id))
    timers.advance(by: .seconds(9))
    #expect(try report(nil).secondsAsleep == 9 && report(nil).lastWake == nil)
    driver.send(.wakeNeeded(id, "data from a client"))
    driver.send(.resumed(id, .milliseconds(5)))
    timers.advance(by: .seconds(3))
    #expect(try report(nil).secondsAsleep == nil)
    #expect(
      try report(nil).lastWake
        == LastWakeReport(
          code: "wake_needed", text: "woken by data from a client", secondsAgo: 3))
  }

  @Test(
    arguments: [(.hibernated, 0, 4096), (.background, 0, nil), (.background, 1 << 20, 4096)]
      as [(WorkerState, Int64, Int64?)])
  func `The size of a recorded image is reported`(
    state: WorkerState, inTrim: Int64, size: Int64?
  ) throws {
    let report = try report(state) { ($0.imageLength, $0.bytesInTrimImage) = (4096, inTrim) }
    #expect(report.imageSize == size)
  }

  // MARK: plans

  private let now = Instant(nanoseconds: 10_000_000_000)

  private func plans(
    _ facts: WorkerFacts, _ state: WorkerState = .terminated
  ) -> WorkerReport {
    var report = WorkerReport(name: "web", state: state.rawValue)
    report.reason = CodedText("exited", "exited with status 4")
    facts.describeRuns(in: &report, at: now)
    return report
  }

  @Test func `The report of a worker that has ended has its planned starts, the nearest first`() {
    var all = WorkerFacts(worker: .forTest("web"))
    #expect(plans(all).reason.code == "exited")
    all.history.problem = CodedText("gave_up", "it ended too often")
    #expect(plans(all).reason == CodedText("gave_up", "it ended too often"))
    all.awaited = ("waits for db (ready)", ["db"])
    #expect(plans(all).reason == CodedText("waits_for_worker", "waits for db (ready)"))
    all.history.plan = .waitingForMemory(reason: "it was terminated")
    #expect(
      plans(all).reason
        == CodedText("waits_for_memory", "restarts when memory is available: it was terminated"))
    #expect(plans(all).restartsInSeconds == nil)
    all.history.plan = .backingOff(until: now + .milliseconds(2500), reason: "exited with status 4")
    let report = plans(all)
    #expect(
      report.reason == CodedText("backing_off", "restarts in 3 s: exited with status 4"))
    #expect(report.restartsInSeconds == 2.5)
    #expect(plans(all, .background).reason.code == "exited", "it runs: no plan is waited for")
  }

  @Test func `A report has the worker's earlier runs and restarts`() {
    var all = WorkerFacts(worker: .forTest("web"))
    all.history = RunHistory(exits: [
      ExitRecord(
        at: 7, why: "exited with status 4", status: .exited(4), footprint: ByteCount(9),
        lastWords: "oh")
    ])
    all.history.restarts = 2
    let report = plans(all, .hibernated)
    #expect(report.exits?.map(\.at) == [7] && report.exits?.first?.lastWords == "oh")
    #expect(report.restarts == 2)
  }
}

@Suite("What the daemon knows of a worker") struct WorkerFactsReaderTests {
  private let world: AdapterWorld

  init() throws { world = try AdapterWorld() }

  /// What the daemon adds to a worker's report.
  private func report(
    _ worker: WorkerUnit, _ program: (any CallersProgram)? = nil
  ) -> WorkerReport {
    var report = WorkerReport(name: worker.id.name, state: "background")
    world.makeFacts(program).describe(worker.id, in: &report)
    return report
  }

  @Test func `A worker is shown as it was launched, with what has changed since`() throws {
    let worker = try world.add()
    worker.recordLaunch()
    #expect(report(worker).changedSinceLaunch == nil && report(worker).groups == nil)
    worker.configuration.command = ["web", "--new"]
    worker.configuration.reloadSignal = SIGHUP
    #expect(world.makeFacts().read(worker.id)?.worker === worker)
    let shown = report(worker)
    #expect(shown.command == ["web", "--serve"] && shown.reloadSignal == "SIGHUP")
    #expect(shown.changedSinceLaunch?.contains("command") == true && shown.wrapper == nil)
    #expect(shown.log == "/logs/web.log", "the file that it was launched to write to")
    worker.process = nil
    #expect(report(worker).log == world.state.log(of: "web"))
  }

  @Test func `An adopted worker's log is its supervisor's`() throws {
    let worker = try world.add()
    worker.external = ExternalWorker(mayBeTerminated: false)
    #expect(world.makeFacts().read(worker.id)?.worker.external != nil)
    #expect(report(worker).log == nil && report(worker).wrapper == nil)
  }

  @Test func `A wrapper's program has no log if it has its caller's output`() throws {
    let shown = report(try world.add(), TestProgram(wakes: 3))
    #expect(shown.log == nil && shown.wrapper == getpid() && shown.wakes == 3)
    #expect(shown.host == "nvim" && shown.directory == "/home/me/shop")
    func policy(_ control: ControlWorld) throws -> [PolicyValueReport]? {
      try control.only(control.ask(.policy)).policy
    }
    #expect(try policy(ControlWorld(program: TestProgram(wakes: 3))) != policy(ControlWorld()))
  }

  @Test func `A worker's uses are counted from the events that the chronicle gets`() throws {
    world.driver.connect([world.chronicle])
    let worker = try world.add()
    let reader = world.makeFacts()
    #expect(reader.activity(of: worker.id)?.uses == 0)
    world.driver.send(.activity(worker.id))
    #expect(reader.activity(of: worker.id)?.uses == 1)
  }
}
