import Control
import Glibc
import Lifecycle
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

/// Processes of another manager, as a test says. The test's own process stands for each.
private final class World: ExternalHost {
  typealias Examination = JobOutcome<Result<ExternalProcess, AdoptionRefusal>>

  let timers = FakeTimers()
  let notes = EventNotes()
  let workers = WorkerRegistry()
  let driver: EngineDriver
  var isClosing = false
  var wrapped: Set<String> = []
  var owners: [Int32: String] = [:]
  var attachRefusal: String?
  var successor: Successor?
  private(set) var calls: [String] = []
  private(set) var lines: [String] = []
  private var examinations: [(Examination) -> Void] = []
  private var wakes: [(Answer) -> Void] = []

  init() { driver = .forTest(timers, notes) }

  func isAlive(_ id: WorkerID) -> Bool { driver.state.state(of: id)?.isAlive == true }
  func isWrapped(_ id: WorkerID) -> Bool { wrapped.contains(id.name) }
  func owner(of pid: Int32) -> WorkerID? { owners[pid].map { WorkerID($0) } }
  func examine(
    _ wanted: AdoptionSpecification, as name: String, within limit: Duration,
    then: @escaping (Examination) -> Void
  ) {
    calls.append("examine \(wanted.pid ?? 0) as \(name)")
    examinations.append(then)
  }
  func attach(_ found: ExternalProcess, to runtime: WorkerRuntime) throws {
    if let attachRefusal { throw TestFailure(attachRefusal) }
    calls.append("attach \(runtime.id)")
  }
  func wasAdded(_ id: WorkerID) { calls.append("added \(id)") }
  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    calls.append("wake \(id)")
    wakes.append(answer)
  }
  func letGo(of runtime: WorkerRuntime) { calls.append("let go of \(runtime.id)") }
  func remove(_ id: WorkerID) {
    calls.append("remove \(id)")
    workers[id] = nil
  }
  func attachSuccessor(to runtime: WorkerRuntime) -> Successor? {
    calls.append("look for a successor")
    return successor
  }
  func save(_ runtime: WorkerRuntime, _ state: WorkerState) {
    calls.append("save \(runtime.id) \(state)")
  }
  func log(_ priority: DaemonLog.Priority, _ text: String) { lines.append(text) }

  // MARK: what a test does

  func examined(_ outcome: Examination) { examinations.removeFirst()(outcome) }
  func woken(_ code: Answer.Code = .done, _ text: String = "") {
    wakes.removeFirst()(Answer(code, text))
  }
}

@Suite("Workers that another program supervises") struct ExternalAdoptionTests {
  private let world = World()
  private let externals: ExternalAdoption
  private let web = WorkerID("web")

  init() { externals = ExternalAdoption(world.driver, world.workers, host: world) }

  private final class Heard { var responses: [ControlResponse] = [] }

  private func ask(
    _ name: String? = "web", _ wanted: AdoptionSpecification? = AdoptionSpecification(pid: 100)
  ) -> Heard {
    let heard = Heard()
    let request = ControlRequest(id: 7, verb: .adopt, worker: name, adoption: wanted)
    externals.adopt(request) { heard.responses.append($0) }
    return heard
  }

  private func askRelease(_ name: String? = "web") -> Heard {
    let heard = Heard()
    externals.release(ControlRequest(id: 8, verb: .release, worker: name)) {
      heard.responses.append($0)
    }
    return heard
  }

  private static func process() throws -> ExternalProcess {
    let own = try ProcessStat.read(getpid())
    return ExternalProcess(root: own, tree: ProcessTree(processes: [own]))
  }

  private func adopt(_ state: WorkerState = .background) throws {
    let heard = ask()
    world.examined(.done(.success(try Self.process())))
    #expect(heard.responses.map(\.result) == [.done])
    if state != .background {
      let profile = WorkerProfile(policy: LifecyclePolicy(name: "test"))
      world.driver.send(.exited(web, .unknown))
      world.driver.send(.adopted(web, profile, state))
    }
  }

  private func text(_ heard: Heard) -> String { heard.responses.map(\.text).joined() }

  // MARK: adopt

  @Test("It is looked at first, and is then a worker in the background, for the next daemon, too")
  func adopted() throws {
    var wanted = AdoptionSpecification(pid: 100)
    wanted.importance = 30
    wanted.mayBeTerminated = true
    let heard = ask("web", wanted)
    #expect(heard.responses.isEmpty && world.calls == ["examine 100 as web"])
    world.examined(.done(.success(try Self.process())))
    #expect(heard.responses.map(\.id) == [7])
    #expect(text(heard).hasPrefix("web is looked after (pid \(getpid()));"))
    #expect(world.driver.state.state(of: web) == .background)
    #expect(world.calls.suffix(3) == ["attach web", "added web", "save web background"])
    let runtime = world.workers[web]
    #expect(runtime?.external?.mayBeTerminated == true && runtime?.isDeclared == false)
    #expect(runtime?.configuration.importance == 30)
  }

  @Test("A request that makes no sense is refused before anything is looked at")
  func malformed() {
    #expect(ask(nil).responses.first?.result == .badRequest)
    #expect(ask("web", nil).responses.first?.result == .badRequest)
    #expect(ask("a/b").responses.first?.result == .badRequest)
    #expect(world.calls.isEmpty)
  }

  @Test("A name that is taken is refused: a running, a wrapped, a declared worker's")
  func taken() throws {
    try adopt()
    #expect(text(ask()) == "web is running already")
    world.wrapped = ["tool"]
    #expect(text(ask("tool")) == "tool is the name of a wrapped worker")
    world.workers[WorkerID("db")] = .forTest("db")
    #expect(text(ask("db")) == "db is in the configuration")
    world.isClosing = true
    #expect(text(ask("new")) == "the daemon is ending")
    #expect(world.calls.count { $0.hasPrefix("examine") } == 1)
  }

  @Test("What has changed while it was looked at counts")
  func meanwhile() throws {
    let (first, second, third) = (ask(), ask(), ask("other"))
    let process = try Self.process()
    world.examined(.done(.success(process)))
    world.examined(.done(.success(process)))
    #expect(first.responses.map(\.result) == [.done])
    #expect(text(second) == "web is running already")
    world.owners = [getpid(): "web"]
    world.examined(.done(.success(process)))
    #expect(text(third).hasSuffix("belongs to the worker web"))
    let fourth = ask("late")
    world.isClosing = true
    world.examined(.done(.success(process)))
    #expect(text(fourth) == "the daemon is ending")
    #expect(world.workers.count == 1)
  }

  @Test("What can't be looked at in time, or must not sleep, isn't adopted")
  func failures() {
    for outcome in [World.Examination.overdue, .busy] {
      let heard = ask()
      world.examined(outcome)
      #expect(heard.responses.map(\.result) == [.refused])
      #expect(text(heard).hasPrefix("what web would be can't be looked at within 5 s"))
    }
    let refused = ask()
    world.examined(.done(.failure(.refused("process 100 is stopped"))))
    #expect(text(refused) == "process 100 is stopped")
    let malformed = ask()
    world.examined(.done(.failure(.malformed("either a pid or a cgroup"))))
    #expect(malformed.responses.map(\.result) == [.badRequest])
    #expect(world.workers.count == 0 && world.notes.events.isEmpty)
  }

  @Test("A process that can't be held, and an importance out of range, leave no worker behind")
  func notHeld() throws {
    world.attachRefusal = "it has just ended"
    let heard = ask()
    world.examined(.done(.success(try Self.process())))
    #expect(text(heard) == "web can't be adopted: it has just ended")
    var wanted = AdoptionSpecification(pid: 100)
    wanted.importance = 101
    let high = ask("web", wanted)
    world.examined(.done(.success(try Self.process())))
    #expect(high.responses.map(\.result) == [.badRequest])
    #expect(world.workers.count == 0 && world.notes.events.isEmpty)
  }

  @Test("It is neither started nor ended here while it runs; every other verb is carried out")
  func verbs() throws {
    try adopt()
    for verb in [Request.Verb.start, .stop, .terminate] {
      #expect(externals.foreignRefusal(verb, web)?.hasPrefix("web was adopted") == true)
    }
    #expect(externals.foreignRefusal(.suspend, web) == nil)
    #expect(externals.foreignRefusal(.stop, WorkerID("other")) == nil)
    world.driver.send(.exited(web, .unknown))
    #expect(externals.foreignRefusal(.start, web) == nil)
  }

  // MARK: release

  @Test("One that runs is given back at once, and nothing of it is kept")
  func releaseRunning() throws {
    try adopt()
    let heard = askRelease()
    #expect(heard.responses.map(\.result) == [.done])
    #expect(text(heard) == "web is on its own again")
    #expect(world.calls.suffix(2) == ["let go of web", "remove web"])
    #expect(world.notes.events.suffix(1) == ["released"] && world.workers.count == 0)
  }

  @Test("One that sleeps is woken before it is given back")
  func releaseAsleep() throws {
    try adopt(.hibernated)
    let heard = askRelease()
    #expect(heard.responses.isEmpty && world.calls.last == "wake web")
    world.woken()
    #expect(heard.responses.map(\.result) == [.done] && world.workers.count == 0)
  }

  @Test("One that can't be woken stays a worker of the daemon")
  func cantBeWoken() throws {
    try adopt(.hibernated)
    let heard = askRelease()
    world.woken(.failed, "web: its image can't be read")
    #expect(heard.responses.map(\.result) == [.failed])
    #expect(text(heard) == "web: its image can't be read")
    #expect(world.workers[web] != nil && !world.notes.events.contains("released"))
  }

  @Test("Two requests for the same worker are both answered, and it is given back once")
  func releaseTwice() throws {
    try adopt(.suspended)
    let (first, second) = (askRelease(), askRelease())
    world.woken()
    // Another process is adopted under its name before the second answer.
    try adopt()
    world.woken()
    #expect(first.responses.map(\.result) == [.done])
    #expect(second.responses.map(\.result) == [.done])
    #expect(world.notes.events.count { $0 == "released" } == 1)
    #expect(world.workers[web] != nil, "the second one is another worker")
  }

  @Test("What isn't there, or is the daemon's own, isn't given back")
  func notExternal() {
    #expect(askRelease(nil).responses.first?.result == .badRequest)
    #expect(askRelease("nothing").responses.first?.result == .unknownWorker)
    world.workers[WorkerID("db")] = .forTest("db")
    #expect(askRelease("db").responses.first?.result == .refused)
    #expect(world.calls.isEmpty)
  }

  // MARK: its end

  @Test("When its process ends it is forgotten, and what it leaves behind is left alone")
  func ended() throws {
    try adopt()
    let runtime = try #require(world.workers[web])
    runtime.hasExited = true
    externals.externalRootHasEnded(runtime)
    #expect(
      world.calls.suffix(3) == ["look for a successor", "let go of web", "remove web"])
    #expect(world.notes.events.suffix(2) == ["exited", "removed"])
    #expect(world.driver.state.state(of: web) == nil)
  }

  @Test("Where others of its cgroup live on, one of them stands for it, and it can sleep again")
  func successor() throws {
    try adopt()
    let runtime = try #require(world.workers[web])
    runtime.hasExited = true
    world.successor = Successor(pid: 4712, cgroup: "/sys/fs/cgroup/web")
    externals.externalRootHasEnded(runtime)
    #expect(world.driver.state.state(of: web) == .background)
    #expect(world.calls.last == "save web background" && world.workers[web] === runtime)
    #expect(world.lines.last == "web: pid 4712 stands for /sys/fs/cgroup/web now")
    #expect(!runtime.hasExited, "otherwise nothing is begun with it any more")
  }

  @Test("One that was killed by the daemon has no successor")
  func killed() throws {
    try adopt()
    let runtime = try #require(world.workers[web])
    world.successor = Successor(pid: 4712, cgroup: "/sys/fs/cgroup/web")
    runtime.isKilled = true
    externals.externalRootHasEnded(runtime)
    #expect(world.workers.count == 0)
  }
}

@Suite("What a manager wants of a worker that sleeps") struct ManagerWatchingTests {
  private let timers = FakeTimers()
  private let notes = EventNotes()
  private let workers = WorkerRegistry()
  private let driver: EngineDriver
  private let managers: ManagerWatching
  private let world = Seen()

  private final class Seen {
    var looks = 0
    var why: String?
    var prioritized: [WorkerID] = []
  }

  init() {
    driver = .forTest(timers, notes)
    managers = ManagerWatching(driver, workers, timers: timers) { [world] in
      world.prioritized.append($0)
    }
  }

  private func sleeper(_ name: String = "web") -> WorkerRuntime {
    let runtime = WorkerRuntime.forTest(name, isDeclared: false)
    workers[runtime.id] = runtime
    driver.send(.adopted(runtime.id, runtime.profile, .suspended))
    return runtime
  }

  private func look() -> String? {
    world.looks += 1
    return world.why
  }

  @Test("It is looked for ten times a second, and wakes the worker before others")
  func wakes() {
    let runtime = sleeper()
    managers.watchManager(of: runtime, look)
    timers.advance(by: ManagerWatching.interval * 5)
    #expect(world.looks == 5 && !notes.events.contains("wakeNeeded"))
    world.why = "signal 15 was sent to its process 100"
    timers.advance(by: ManagerWatching.interval)
    #expect(notes.events.last == "wakeNeeded" && world.prioritized == [runtime.id])
    #expect(driver.state.state(of: runtime.id) == .resuming)
    // On its way to run it isn't looked at.
    timers.advance(by: ManagerWatching.interval * 3)
    #expect(world.looks == 6)
  }

  @Test("Any number of sleepers is looked at by one timer, which ends with the last watch")
  func oneTimer() {
    let runtimes = ["web", "db"].map { sleeper($0) }
    for runtime in runtimes { managers.watchManager(of: runtime, look) }
    #expect(timers.pending == [ManagerWatching.interval])
    for runtime in runtimes { runtime.managerWatch = nil }
    timers.advance(by: ManagerWatching.interval)
    #expect(timers.pending.isEmpty && world.looks == 0)
    managers.watchManager(of: runtimes[0], look)
    #expect(timers.pending.count == 1)
  }

  @Test("A worker whose process has ended isn't woken, and one without a watch needs no timer")
  func ended() {
    let runtime = sleeper()
    managers.watchManager(of: runtime, nil)
    #expect(timers.pending.isEmpty)
    managers.watchManager(of: runtime, look)
    world.why = "its process 100 has ended"
    runtime.hasExited = true
    timers.advance(by: ManagerWatching.interval)
    #expect(world.looks == 0 && !notes.events.contains("wakeNeeded"))
  }
}
