import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("What the daemon's end knows of its workers") struct EndOfDaemonTests {
  private let timers = FakeTimers()
  private let notes = EventNotes()
  private let external = FakeExternalHost()
  private let listening: ListeningWorld
  private let scratch: Scratch
  private let driver: EngineDriver
  private let workers = WorkerRegistry()
  private let returning = ReturningWorkers()
  private let records: WorkerRecordKeeper
  private let requests: WorkerRequests
  private let launches = Launches()
  private let orders = DaemonEndWorld()
  private let sleeping: SleepWorld
  private let host: EndOfDaemon

  private final class Launches { var underWay: Set<WorkerID> = [] }

  init() throws {
    scratch = try Scratch()
    listening = try ListeningWorld()
    sleeping = try SleepWorld()
    driver = .forTest(timers, notes)
    records = try WorkerRecordKeeper(directory: scratch.path)
    requests = WorkerRequests(driver, returning)
    let log = DaemonLog()
    let restarts = RestartSupervisor(
      timers: timers, stopped: StoppedByPerson(path: "/state/stopped", files: FakeStateFiles()),
      phase: DaemonPhase(), driver: driver, workers: workers, log: log)
    host = EndOfDaemon(
      .init(
        driver: driver, workers: workers, returning: returning, requests: requests,
        externals: ExternalAdoption(external.driver, external.workers, host: external),
        starter: DependencyStarter(
          clock: timers, driver: driver, workers: workers, returning: returning,
          restarts: restarts, requests: requests),
        recordWriter: WorkerRecordWriter(records: records, bootID: "boot", log: log),
        listening: listening.sockets,
        control: ControlSocket(path: "\(scratch.path)/control.sock", listening.loop, log),
        isLaunching: { [launches] in launches.underWay.contains($0) }, log: log))
  }

  /// In this state, with the test's process.
  @discardableResult
  private func add(_ name: String, _ state: WorkerState) throws -> WorkerUnit {
    let runtime = WorkerUnit.forTest(name)
    if state != .terminated {
      runtime.process = try .forTest(name)
      sleeping.sleeps.makeSleep(for: runtime)
    }
    workers[runtime.id] = runtime
    if state == .terminated || state == .launching {
      driver.send(.added(runtime.id, runtime.profile))
      if state == .launching { driver.request(.start, runtime.id) { _ in } }
    } else {
      driver.send(.adopted(runtime.id, runtime.profile, state))
    }
    return runtime
  }

  private func leave() -> DaemonEnd {
    let end = DaemonEnd(host: host, stopping: OrderlyStop(orders, timers: timers), timers: timers)
    end.leave()
    return end
  }

  @Test("The workers come in the order of their names, with the engine's states")
  func standings() throws {
    try add("web", .background)
    try add("db", .terminated)
    workers[WorkerID("api")] = .forTest("api")
    let found = host.workers
    #expect(found.map(\.id.name) == ["api", "db", "web"])
    #expect(found.map(\.state) == [nil, .terminated, .background])
    #expect(found.allSatisfy { !$0.isBusy && !$0.isAdopting && !$0.isExternal && !$0.restsFrozen })
  }

  @Test("Workers of an earlier daemon that couldn't be adopted are named, with their processes")
  func unadopted() throws {
    let own = try ProcessStat.read(getpid()).identity
    func record(_ name: String, bootID: String = "boot") -> WorkerRecord {
      WorkerRecord(
        name: name, process: own, session: own.pid, bootID: bootID, command: [name],
        directory: "/", logPath: "/dev/null", state: WorkerState.background.rawValue)
    }
    #expect(host.unadopted.isEmpty)
    try add("adopted", .background)
    var external = record("external")
    external.external = .mayNot
    let others = [record("adopted"), external, record("earlier", bootID: "earlier boot")]
    for record in [record("keys"), record("agent")] + others { records.save(record) { _ in } }
    #expect(host.unadopted.map(\.id.name) == ["agent", "keys"])
    #expect(host.unadopted.map(\.pid) == [own.pid, own.pid])
    records.remove("agent")
    #expect(host.unadopted.map(\.id.name) == ["keys"])
  }

  @Test("A worker that is being launched is busy, and one with an operation on another thread")
  func busy() throws {
    let web = try add("web", .suspended)
    try add("db", .launching)
    #expect(host.workers.map(\.isBusy) == [false, false])
    launches.underWay = [WorkerID("db")]
    #expect(host.workers.map(\.isBusy) == [true, false])
    launches.underWay = []
    web.sleep?.resume()
    #expect(host.workers.map(\.isBusy) == [false, true])
    sleeping.memory.thawed?(nil)
    #expect(host.workers.map(\.isBusy) == [false, false])
  }

  @Test("The daemon leaves a worker only when its launch has ended, with a record of its process")
  func launching() throws {
    let runtime = try add("web", .launching)
    // The engine counts it as running; its process isn't there yet.
    runtime.process = nil
    launches.underWay = [runtime.id]
    let end = leave()
    end.engineIsQuiet()
    #expect(!end.hasEnded)
    // Forked, and not yet its program: without the launcher nothing would record it.
    end.engineIsQuiet()
    #expect(!end.hasEnded)
    runtime.process = try .forTest("web")
    launches.underWay = []
    driver.send(.launched(runtime.id))
    end.engineIsQuiet()
    #expect(end.hasEnded)
    records.drain()
    #expect(try records.loadAll().records.map(\.name) == ["web"])
  }

  @Test("A launch that fails while the daemon leaves doesn't keep it")
  func launchFails() throws {
    let runtime = try add("web", .launching)
    runtime.process = nil
    launches.underWay = [runtime.id]
    let end = leave()
    launches.underWay = []
    driver.send(.launchFailed(runtime.id, "no such file"))
    end.engineIsQuiet()
    #expect(end.hasEnded)
    records.drain()
    #expect(try records.loadAll().records.isEmpty)
  }

  @Test("A worker that is being adopted keeps the daemon from leaving, until that is over")
  func adopting() throws {
    let runtime = try add("web", .terminated)
    returning.begin(runtime.id)
    #expect(host.isAdopting && host.workers[0].isAdopting && host.workers[0].isAlive)
    let end = leave()
    #expect(!end.hasEnded)
    returning.isOver(runtime.id)
    end.engineIsQuiet()
    #expect(!host.isAdopting && end.hasEnded)
  }

  @Test(
    "Only a worker that sleeps in a frozen cgroup rests frozen, and an external one is named so")
  func kinds() throws {
    let web = try add("web", .suspended)
    #expect(host.workers.map(\.restsFrozen) == [false] && !host.freezes(web.id))
    #expect(!host.freezes(WorkerID("unknown")))
    web.external = ExternalWorker(mayBeTerminated: false)
    #expect(host.workers.map(\.isExternal) == [true])
  }

  @Test("A wake that waits for an adoption is answered after it")
  func wakes() throws {
    let runtime = try add("web", .terminated)
    returning.begin(runtime.id)
    var answers: [Answer] = []
    host.wake(runtime.id) { answers.append($0) }
    #expect(answers.isEmpty)
    returning.isOver(runtime.id)
    #expect(answers.count == 1)
  }
}
