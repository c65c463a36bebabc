import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import Testing

@testable import Daemon

@Suite("Workers that another program supervises") struct ExternalAdoptionTests {
  let world = FakeExternalHost()
  let externals: ExternalAdoption
  let web = WorkerID("web")

  init() { externals = ExternalAdoption(world.driver, world.workers, host: world) }

  final class Heard { var responses: [ControlResponse] = [] }

  func ask(
    _ name: String? = "web", _ wanted: AdoptionSpecification? = AdoptionSpecification(pid: 100)
  ) -> Heard {
    let heard = Heard()
    let request = ControlRequest(id: 7, verb: .adopt, worker: name, adoption: wanted)
    externals.adopt(request) { heard.responses.append($0) }
    return heard
  }

  func askRelease(_ name: String? = "web") -> Heard {
    let heard = Heard()
    externals.release(ControlRequest(id: 8, verb: .release, worker: name)) {
      heard.responses.append($0)
    }
    return heard
  }

  static func process() throws -> ExternalProcess {
    let own = try ProcessStat.read(getpid())
    return ExternalProcess(root: own, tree: ProcessTree(processes: [own]))
  }

  func adopt(_ state: WorkerState = .background) throws {
    let heard = ask()
    world.examined(.done(.success(try Self.process())))
    #expect(heard.responses.map(\.result) == [.done])
    if state != .background { move(to: state) }
  }

  func text(_ heard: Heard) -> String { heard.responses.map(\.text).joined() }

  // MARK: adopt

  @Test(
    "An adopted process is examined first, and is then a background worker, also for the next daemon"
  )
  func adopted() throws {
    var wanted = AdoptionSpecification(pid: 100)
    wanted.importance = 30
    wanted.mayBeTerminated = true
    let heard = ask("web", wanted)
    #expect(heard.responses.isEmpty && world.calls == ["examine 100 as web"])
    world.examined(.done(.success(try Self.process())))
    #expect(heard.responses.map(\.id) == [7])
    #expect(text(heard).hasPrefix("web is managed (pid \(getpid()));"))
    #expect(world.driver.state.state(of: web) == .background)
    #expect(world.calls.suffix(3) == ["attach web", "added web", "save web background"])
    let runtime = world.workers[web]
    #expect(runtime?.external?.mayBeTerminated == true && runtime?.isDeclared == false)
    #expect(runtime?.configuration.importance == 30)
  }

  @Test("The request's policy is the worker's, and is recorded for the next daemon")
  func chosenPolicy() throws {
    let wanted = AdoptionSpecification(
      pid: 100, policy: "server", settings: ["hibernate.after=7s"], shadow: true)
    let heard = ask("web", wanted)
    var process = try Self.process()
    process.policy = PolicyLibrary.builtIn.load("server").value
    world.examined(.done(.success(process)))
    #expect(heard.responses.map(\.result) == [.done])
    let runtime = try #require(world.workers[web])
    let policy = runtime.configuration.policy
    #expect(policy.name == "server" && policy.hibernate.after == .seconds(7))
    #expect(policy.mode == .shadow)
    #expect(runtime.external?.chosen == wanted.chosenPolicy)
    #expect(
      world.lines.last?.hasSuffix("(policy server, hibernate.after=7s, shadow mode)") == true)
  }

  @Test("A request whose policy has a mistake adopts nothing, and says which value it is")
  func wrongSetting() throws {
    let heard = ask("web", AdoptionSpecification(pid: 100, settings: ["hibernate.aftr=7s"]))
    world.examined(.done(.success(try Self.process())))
    #expect(heard.responses.map(\.result) == [.badRequest])
    #expect(text(heard).contains("did you mean `hibernate.after`?"), "\(text(heard))")
    #expect(world.workers.count == 0)
  }

  @Test("Health checks of a request are the worker's, and a wrong one adopts nothing")
  func healthChecks() throws {
    let wrong = ask("web", AdoptionSpecification(pid: 100, healthChecks: ["8081", "x"]))
    world.examined(.done(.success(try Self.process())))
    #expect(wrong.responses.map(\.result) == [.badRequest])
    #expect(text(wrong).contains("`x` isn't a health check"), "\(text(wrong))")
    #expect(world.workers.count == 0)
    let checks = ["8081/healthz", "8080", "8080"]
    let heard = ask("web", AdoptionSpecification(pid: 100, healthChecks: checks))
    world.examined(.done(.success(try Self.process())))
    #expect(heard.responses.map(\.result) == [.done], "\(text(heard))")
    let configuration = try #require(world.workers[web]?.configuration)
    #expect(configuration.healthChecksWhileAsleep.map(\.text) == ["8081/healthz", "8080"])
  }

  @Test(
    "Workers that are adopted to wake together name each other, and a name that isn't adopted is refused"
  )
  func together() throws {
    try adopt()
    let wanted = AdoptionSpecification(pid: 101, wakeWith: ["web"])
    for _ in 0..<2 {
      let heard = ask("db", wanted)
      world.examined(.done(.success(try Self.process())))
      #expect(heard.responses.map(\.result) == [.done], "\(text(heard))")
      #expect(world.driver.state.wakesWith(web) == [WorkerID("db")])
      #expect(world.driver.state.wakesWith(WorkerID("db")) == [web])
      #expect(world.workers[web]?.configuration.wakeWith == ["db"])
      #expect(world.calls.contains("save web background"))
      // It is restarted. Another worker of its name doesn't wake with it until it is said again.
      _ = askRelease("db")
      #expect(world.workers[web]?.configuration.wakeWith == [])
      #expect(world.driver.state.wakesWith(web) == [])
    }
    let alone = ask("x", AdoptionSpecification(pid: 102, wakeWith: ["nothing"]))
    world.examined(.done(.success(try Self.process())))
    #expect(text(alone).contains("can't wake with nothing, which isn't an adopted worker"))
    #expect(alone.responses.map(\.result) == [.refused])
  }

  @Test("A wrong request for adoption is refused before any process is examined")
  func malformed() {
    #expect(ask(nil).responses.first?.result == .badRequest)
    #expect(ask("web", nil).responses.first?.result == .badRequest)
    #expect(ask("a/b").responses.first?.result == .badRequest)
    #expect(world.calls.isEmpty)
  }

  @Test("Adoption under the name of a running, a wrapped or a declared worker is refused")
  func taken() throws {
    try adopt()
    #expect(text(ask()) == "web is already running")
    world.wrapped = ["tool"]
    #expect(text(ask("tool")) == "tool is the name of a wrapped worker")
    world.workers[WorkerID("db")] = .forTest("db")
    #expect(text(ask("db")) == "db is in the configuration")
    world.isClosing = true
    #expect(text(ask("new")) == "the daemon is ending")
    #expect(world.calls.count { $0.hasPrefix("examine") } == 1)
  }

  @Test("Changes while a process is examined for adoption are taken into account")
  func meanwhile() throws {
    let (first, second, third) = (ask(), ask(), ask("other"))
    let process = try Self.process()
    world.examined(.done(.success(process)))
    world.examined(.done(.success(process)))
    #expect(first.responses.map(\.result) == [.done])
    #expect(text(second) == "web is already running")
    world.owners = [getpid(): "web"]
    world.examined(.done(.success(process)))
    #expect(text(third).hasSuffix("belongs to the worker web"))
    let fourth = ask("late")
    world.isClosing = true
    world.examined(.done(.success(process)))
    #expect(text(fourth) == "the daemon is ending")
    #expect(world.workers.count == 1)
  }

  @Test("A process that can't be examined in time, or must not sleep, isn't adopted")
  func failures() {
    for outcome in [FakeExternalHost.Examination.overdue, .busy] {
      let heard = ask()
      world.examined(outcome)
      #expect(heard.responses.map(\.result) == [.refused])
      #expect(text(heard).hasPrefix("web can't be examined within 5 s"))
    }
    let refused = ask()
    world.examined(.done(.failure(.refused("process 100 is stopped"))))
    #expect(text(refused) == "process 100 is stopped")
    let malformed = ask()
    world.examined(.done(.failure(.malformed("either a pid or a cgroup"))))
    #expect(malformed.responses.map(\.result) == [.badRequest])
    #expect(world.workers.count == 0 && world.notes.events.isEmpty)
  }

  @Test("A failed adoption leaves no worker behind")
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

  @Test("An adopted worker that runs can't be started or ended, and every other verb works")
  func verbs() throws {
    try adopt()
    for verb in [Request.Verb.start, .restart, .stop, .terminate] {
      #expect(externals.foreignRefusal(verb, web)?.hasPrefix("web was adopted") == true)
    }
    #expect(externals.foreignRefusal(.suspend, web) == nil)
    #expect(externals.foreignRefusal(.stop, WorkerID("other")) == nil)
    world.driver.send(.exited(web, .unknown))
    #expect(externals.foreignRefusal(.start, web) == nil)
  }

  // MARK: release

  /// The engine has it in this state.
  func move(to state: WorkerState) {
    let profile = WorkerProfile(policy: LifecyclePolicy(name: "test"))
    world.driver.send(.exited(web, .unknown))
    world.driver.send(.adopted(web, profile, state))
  }

  @Test(
    "One that falls asleep again before its wake is answered isn't given back without its memory")
  func asleepAgain() throws {
    try adopt(.hibernated)
    let heard = askRelease()
    #expect(externals.refusalToSuspend(web) == "it is being released")
    // The answer waits for the disk, and a suspension was under way.
    world.woken()
    #expect(heard.responses.isEmpty && world.workers.count == 1)
    #expect(world.calls.suffix(2) == ["wake web", "wake web"])
    move(to: .background)
    world.woken()
    #expect(heard.responses.map(\.result) == [.done] && world.workers.count == 0)
    #expect(externals.refusalToSuspend(web) == nil)
  }

  @Test("An adopted worker whose process ends is removed, and its other processes are left running")
  func ended() throws {
    try adopt()
    let runtime = try #require(world.workers[web])
    externals.externalRootHasEnded(runtime)
    #expect(
      world.calls.suffix(3) == ["look for a successor", "let go of web", "remove web"])
    #expect(world.notes.events.suffix(2) == ["exited", "removed"])
    #expect(world.driver.state.state(of: web) == nil)
  }

  @Test("If other processes of an adopted worker's cgroup live on, one of them takes its place")
  func successor() throws {
    try adopt()
    let runtime = try #require(world.workers[web])
    world.successor = Successor(pid: 4712, cgroup: "/sys/fs/cgroup/web")
    externals.externalRootHasEnded(runtime)
    #expect(world.driver.state.state(of: web) == .background)
    #expect(world.calls.last == "save web background" && world.workers[web] === runtime)
    #expect(world.lines.last == "web: pid 4712 is now the first process of /sys/fs/cgroup/web")
  }

  @Test("An adopted worker that the daemon killed has no successor")
  func killed() throws {
    try adopt()
    let runtime = try #require(world.workers[web])
    world.successor = Successor(pid: 4712, cgroup: "/sys/fs/cgroup/web")
    let end = try EndWorld()
    runtime.ending = end.ending
    end.ending.kill()
    externals.externalRootHasEnded(runtime)
    #expect(world.workers.count == 0)
  }
}
