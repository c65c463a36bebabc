import Control
import Glibc
import Lifecycle
import Linux
import PolicyFile
import Testing

@testable import Daemon

@Suite("Workers that another program supervises") struct ExternalAdoptionTests {
  let world: AdoptionWorld
  var externals: ExternalAdoption { world.externals }
  let web = WorkerID("web")

  typealias Heard = ControlWorld.Heard

  init() throws { world = try AdoptionWorld() }

  func adopt(_ state: WorkerState = .background) throws {
    let heard = world.ask()
    try world.examined()
    #expect(heard.responses.map(\.result) == [.done])
    if state != .background { world.move(to: state) }
  }

  func text(_ heard: Heard) -> String { heard.responses.map(\.text).joined() }

  // MARK: adopt

  @Test func `A process is examined, adopted in the background, and recorded`() throws {
    var wanted = AdoptionSpecification(pid: 100)
    wanted.importance = 30
    wanted.mayBeTerminated = true
    let heard = world.ask("web", wanted)
    #expect(heard.responses.isEmpty && world.looks.examined == ["100 as web"])
    try world.examined()
    #expect(heard.responses.map(\.id) == [7])
    #expect(text(heard).hasPrefix("web is managed (pid \(AdoptionWorld.pid));"))
    #expect(world.state() == .background && world.recorded()?.state == "background")
    #expect(world.base.restarts.histories[web]?.exits != nil)
    let worker = world.workers[web]
    #expect(worker?.exitWatch != nil)
    #expect(worker?.process?.plan.logPath == world.base.state.log(of: "web"))
    #expect(worker?.external?.mayBeTerminated == true && worker?.isDeclared == false)
    #expect(worker?.configuration.importance == 30)
  }

  @Test func `The request's policy is the worker's, and is recorded for the next daemon`() throws {
    let wanted = AdoptionSpecification(
      pid: 100, policy: "server", settings: ["hibernate.after=7s"], shadow: true)
    let heard = world.ask("web", wanted)
    var process = try AdoptionWorld.process()
    process.policy = PolicyLibrary.builtIn.load("server").value
    try world.examined(process)
    #expect(heard.responses.map(\.result) == [.done])
    let worker = try #require(world.workers[web])
    let policy = worker.configuration.policy
    #expect(policy.name == "server" && policy.hibernate.after == .seconds(7))
    #expect(policy.mode == .shadow)
    #expect(worker.external?.chosen == wanted.chosenPolicy)
    let record = world.recorded()
    #expect(record?.policy == "server" && record?.settings == wanted.settings)
    #expect(world.isLogged("(policy server, hibernate.after=7s, shadow mode)\n"))
  }

  @Test func `A request whose policy has a mistake adopts nothing, and names it`() throws {
    let heard = world.ask("web", AdoptionSpecification(pid: 100, settings: ["hibernate.aftr=7s"]))
    try world.examined()
    #expect(heard.responses.map(\.result) == [.badRequest])
    #expect(text(heard).contains("did you mean `hibernate.after`?"), "\(text(heard))")
    #expect(world.workers.count == 0)
  }

  @Test func `Health checks of a request are the worker's; a wrong one adopts nothing`() throws {
    let wrong = world.ask("web", AdoptionSpecification(pid: 100, healthChecks: ["8081", "x"]))
    try world.examined()
    #expect(wrong.responses.map(\.result) == [.badRequest])
    #expect(text(wrong).contains("`x` isn't a health check"), "\(text(wrong))")
    #expect(world.workers.count == 0)
    let checks = ["8081/healthz", "8080", "8080"]
    let heard = world.ask("web", AdoptionSpecification(pid: 100, healthChecks: checks))
    try world.examined()
    #expect(heard.responses.map(\.result) == [.done], "\(text(heard))")
    let configuration = try #require(world.workers[web]?.configuration)
    #expect(configuration.healthChecksWhileAsleep.map(\.text) == ["8081/healthz", "8080"])
  }

  @Test func `Workers adopted to wake together name each other`() throws {
    try adopt()
    let wanted = AdoptionSpecification(pid: 101, wakeWith: ["web"])
    for _ in 0..<2 {
      let heard = world.ask("db", wanted)
      try world.examined()
      #expect(heard.responses.map(\.result) == [.done], "\(text(heard))")
      #expect(world.driver.state.wakesWith(web) == [WorkerID("db")])
      #expect(world.driver.state.wakesWith(WorkerID("db")) == [web])
      #expect(world.workers[web]?.configuration.wakeWith == ["db"])
      #expect(world.recorded()?.wakeWith == ["db"])
      // The worker is restarted. Another worker of its name doesn't wake with it until a request
      // names it again.
      _ = world.askRelease("db")
      #expect(world.workers[web]?.configuration.wakeWith == [])
      #expect(world.driver.state.wakesWith(web) == [])
    }
    let alone = world.ask("x", AdoptionSpecification(pid: 102, wakeWith: ["nothing"]))
    try world.examined()
    #expect(text(alone).contains("can't wake with nothing, which isn't an adopted worker"))
    #expect(alone.responses.map(\.result) == [.refused])
  }

  @Test func `A wrong request for adoption is refused before any process is examined`() {
    #expect(world.ask(nil).responses.first?.result == .badRequest)
    #expect(world.ask("web", nil).responses.first?.result == .badRequest)
    #expect(world.ask("a/b").responses.first?.result == .badRequest)
    #expect(world.looks.examined.isEmpty)
  }

  @Test func `Adoption under the name of a running, wrapped or declared one is refused`() throws {
    try adopt()
    #expect(text(world.ask()) == "web is already running")
    world.base.wrap("tool")
    #expect(text(world.ask("tool")) == "tool is the name of a wrapped worker")
    world.workers[WorkerID("db")] = .forTest("db")
    #expect(text(world.ask("db")) == "db is in the configuration")
    world.base.phase.isEnding = true
    #expect(text(world.ask("new")) == "the daemon is ending")
    #expect(world.looks.examined.count == 1)
  }

  @Test func `Changes while a process is examined for adoption are considered`() throws {
    let (first, second, third) = (world.ask(), world.ask(), world.ask("other"))
    let process = try AdoptionWorld.process()
    try world.examined(process)
    try world.examined(process)
    #expect(first.responses.map(\.result) == [.done])
    #expect(text(second) == "web is already running")
    var owned = process
    owned.tree = ProcessTree(processes: [try ProcessStat.read(getpid())])
    try world.examined(owned)
    #expect(text(third).hasSuffix("belongs to the worker web"))
    let fourth = world.ask("late")
    world.base.phase.isLeaving = true
    try world.examined(process)
    #expect(text(fourth) == "the daemon is ending")
    #expect(world.workers.count == 1)
  }

  @Test func `A process that can't be examined in time, or must not sleep, isn't adopted`() {
    for outcome in [FakeWorkerProcesses.Examination.overdue, .busy] {
      let heard = world.ask()
      world.looks.answer(examination: outcome)
      #expect(heard.responses.map(\.result) == [.refused])
      #expect(text(heard).hasPrefix("web can't be examined within 5 s"))
    }
    let refused = world.ask()
    world.looks.answer(examination: .done(.failure(.refused("process 100 is stopped"))))
    #expect(text(refused) == "process 100 is stopped")
    let malformed = world.ask()
    world.looks.answer(examination: .done(.failure(.malformed("either a pid or a cgroup"))))
    #expect(malformed.responses.map(\.result) == [.badRequest])
    #expect(world.workers.count == 0 && world.events.isEmpty)
  }

  @Test func `A failed adoption leaves no worker behind`() throws {
    world.memory.endsWhenOpened = { _ in true }
    let heard = world.ask()
    try world.examined()
    #expect(text(heard).hasPrefix("web can't be adopted: "))
    var wanted = AdoptionSpecification(pid: 100)
    wanted.importance = 101
    let high = world.ask("web", wanted)
    try world.examined()
    #expect(high.responses.map(\.result) == [.badRequest])
    #expect(world.workers.count == 0 && world.events.isEmpty)
  }

  @Test func `An adopted worker can't be started or ended; every other verb works`() throws {
    try adopt()
    for verb in [Request.Verb.start, .restart, .stop, .terminate] {
      #expect(externals.foreignRefusal(verb, web)?.hasPrefix("web was adopted") == true)
    }
    for verb in [Request.Verb.suspend, .trim, .fill] {
      #expect(externals.foreignRefusal(verb, web) == nil)
    }
    #expect(externals.foreignRefusal(.stop, WorkerID("other")) == nil)
    world.driver.send(.exited(web, .unknown))
    #expect(externals.foreignRefusal(.start, web) == nil)
  }

  // MARK: release

  @Test func `One that sleeps again before its release is answered is woken once more`() throws {
    try adopt(.hibernated)
    let heard = world.askRelease()
    #expect(externals.refusalToSuspend(web) == "it is being released")
    // The answer waits for the disk, and a suspension was under way.
    world.base.saved.isSaved = false
    world.driver.send(.resumed(web, .zero))
    world.move(to: .suspended)
    world.base.saved.save()
    #expect(heard.responses.isEmpty && world.workers.count == 1)
    #expect(world.state() == .resuming)
    world.driver.send(.resumed(web, .zero))
    #expect(heard.responses.map(\.result) == [.done] && world.workers.count == 0)
    #expect(externals.refusalToSuspend(web) == nil)
  }

  @Test func `An adopted worker whose process ends is removed, and others run on`() throws {
    try adopt()
    externals.externalRootDidEnd(try #require(world.workers[web]))
    #expect(world.looks.begun.isEmpty && world.looks.forgotten == ["web"])
    #expect(world.events.suffix(2) == ["exited", "removed"])
    #expect(world.state() == nil && world.workers.count == 0 && world.recorded() == nil)
  }

  /// Adopts a worker in a cgroup in which this process runs too, when the first one has ended.
  private func adoptInGroup() throws -> WorkerUnit {
    try world.base.scratch.write("group/cgroup.events", "")
    let cgroup = try WorkerCgroup(path: world.base.scratch.path + "/group", isExternal: true)
    _ = world.ask()
    try world.examined(try AdoptionWorld.process(in: cgroup))
    world.memory.tree = ProcessTree(processes: [try AdoptionWorld.stat(AdoptionWorld.pid + 1)])
    return try #require(world.workers[web])
  }

  @Test func `Another process of an adopted worker's cgroup represents it next`() throws {
    let worker = try adoptInGroup()
    let old = worker.process
    externals.externalRootDidEnd(worker)
    #expect(world.state() == .background && world.workers[web] === worker)
    #expect(worker.process !== old && world.recorded()?.state == "background")
    let path = world.base.scratch.path + "/group"
    #expect(
      world.isLogged("web: pid \(AdoptionWorld.pid + 1) is now the first process of \(path)"))
  }

  @Test func `A sleeping cgroup is woken when its first process has ended`() throws {
    let worker = try adoptInGroup()
    worker.sleepers = try [AdoptionWorld.stat(AdoptionWorld.pid + 1).identity]
    world.move(to: .suspended)
    externals.externalRootDidEnd(worker)
    #expect(world.state() == .resuming && world.workers[web] === worker)
    #expect(!worker.hasExited)
  }

  @Test func `A process that started in a sleeping cgroup isn't the successor of its first`() throws
  {
    let worker = try adoptInGroup()
    worker.sleepers = try [AdoptionWorld.stat(AdoptionWorld.pid + 2).identity]
    world.move(to: .hibernated)
    externals.externalRootDidEnd(worker)
    #expect(world.workers.count == 0 && world.recorded() == nil)
  }

  @Test func `A worker has no successor if none lives, or if the daemon killed it`() throws {
    let worker = try adoptInGroup()
    world.memory.endsWhenOpened = { _ in true }
    externals.externalRootDidEnd(worker)
    #expect(world.workers.count == 0)
    world.memory.endsWhenOpened = { _ in false }
    let next = try adoptInGroup()
    world.memory.tree = ProcessTree(processes: [])
    externals.externalRootDidEnd(next)
    #expect(world.workers.count == 0)
    let killed = try adoptInGroup()
    world.base.ends.kill(web)
    #expect(killed.isKilled)
    externals.externalRootDidEnd(killed)
    #expect(world.workers.count == 0)
  }
}
