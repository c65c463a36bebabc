import Lifecycle
import Policy
import PolicyFile
import Testing

@testable import Daemon

@Suite("A configuration that is read again") struct ConfigurationReloaderTests {
  /// A daemon whose workers are what a test says; it notes what a reload does with them.
  private final class World: ConfigurationHost {
    let driver: EngineDriver
    private let timers = FakeTimers()
    private let executor = NoExecutor()
    private(set) lazy var reloader = ConfigurationReloader(
      driver: driver, host: self, log: DaemonLog()
    ) {
      [unowned self] in waiting.append($0)
    }
    private var waiting: [(ParseResult<DaemonConfiguration>?) -> Void] = []
    var workers: [WorkerID: KnownWorker] = [:]
    private(set) var calls: [String] = []
    var isEnding = false
    var rules: [AdoptionRule] = []
    var hooks = Hooks()
    var isLeaving = false

    private final class NoExecutor: DirectiveExecutor {
      func execute(_ directive: Directive) {}
      func engineIsQuiet() {}
    }

    init(_ names: [String] = []) {
      let policy = LifecyclePolicy(name: "test")
      driver = EngineDriver(
        Engine(policy: policy), clock: timers,
        replies: RequestReplies(FakeRecords(), timers: timers))
      driver.connect(executor, [])
      for name in names { add(name) }
    }

    func add(_ name: String, isDeclared: Bool = true, isRunning: Bool = false) {
      let id = WorkerID(name)
      workers[id] = KnownWorker(configuration: worker(name), isDeclared: isDeclared)
      let profile = WorkerProfile(policy: driver.state.policy)
      driver.send(isRunning ? .adopted(id, profile, .background) : .added(id, profile))
    }

    func worker(_ name: String) -> WorkerConfiguration {
      WorkerConfiguration(name: name, command: ["/bin/\(name)"], policy: driver.state.policy)
    }

    func configuration(_ workers: [WorkerConfiguration]) -> DaemonConfiguration {
      DaemonConfiguration(policy: driver.state.policy, workers: workers)
    }

    /// What has been read; nil: the file system doesn't answer.
    func read(_ configuration: DaemonConfiguration?) {
      waiting.removeFirst()(configuration.map { ParseResult(value: $0, diagnostics: []) })
    }

    func readErrors() { waiting.removeFirst()(ParseResult(value: nil, diagnostics: [])) }

    func reload(_ new: DaemonConfiguration?, allowEmpty: Bool = false) -> [ReloadOutcome] {
      var outcomes: [ReloadOutcome] = []
      reloader.reload(allowEmpty: allowEmpty) { outcomes.append($0) }
      read(new)
      return outcomes
    }

    func preview(_ new: DaemonConfiguration?, allowEmpty: Bool = false) -> [ReloadOutcome] {
      var outcomes: [ReloadOutcome] = []
      reloader.preview(allowEmpty: allowEmpty) { outcomes.append($0) }
      read(new)
      return outcomes
    }

    func known(_ id: WorkerID) -> KnownWorker? { workers[id] }
    var knownWorkers: [WorkerID] { Array(workers.keys) }
    func policyHasChanged(_ policy: LifecyclePolicy) { calls.append("policy \(policy.name)") }
    func apply(_ configuration: DaemonConfiguration) {
      calls.append("configuration of \(configuration.workers.count)")
    }
    func remove(_ id: WorkerID) {
      calls.append("remove \(id)")
      workers[id] = nil
    }
    func undeclare(_ id: WorkerID) {
      calls.append("undeclare \(id)")
      workers[id]?.isDeclared = false
    }
    func whenAdopted(_ id: WorkerID, _ body: @escaping () -> Void) -> Bool {
      if adopting[id] == nil { return false }
      adopting[id]?.append(body)
      return true
    }
    /// The workers that are being adopted, and what waits for that.
    var adopting: [WorkerID: [() -> Void]] = [:]
    func adopt(_ id: WorkerID) {
      driver.send(.adopted(id, WorkerProfile(policy: driver.state.policy), .background))
      for body in adopting.removeValue(forKey: id) ?? [] { body() }
    }
    func introduce(_ configuration: WorkerConfiguration) {
      calls.append("introduce \(configuration.name)")
      workers[WorkerID(configuration.name)] = KnownWorker(
        configuration: configuration, isDeclared: true)
    }
    func apply(_ configuration: WorkerConfiguration, of id: WorkerID) {
      calls.append("take \(id)")
      workers[id] = KnownWorker(configuration: configuration, isDeclared: true)
    }
    func setPolicy(_ policy: LifecyclePolicy, of id: WorkerID) {
      calls.append("policy \(policy.name) of \(id)")
    }
    var failed: Set<WorkerID> = []
    func hasFailed(_ id: WorkerID) -> Bool { failed.contains(id) }
    func startAutomatically(added: [WorkerConfiguration], corrected: [WorkerConfiguration]) {
      calls.append("start \((added + corrected).map(\.name))")
    }
    func configurationHasChanged() { calls.append("all is taken") }
  }

  @Test("A reload removes, adds and changes workers before it starts any, and is answered once")
  func order() {
    let world = World(["old", "web", "same"])
    var web = world.worker("web")
    web.importance = 7
    let new = world.configuration([world.worker("new"), web, world.worker("same")])
    let outcomes = world.reload(new)
    #expect(
      world.calls == [
        "configuration of 3", "remove old", "introduce new", "take web", "start [\"new\"]",
        "all is taken",
      ])
    #expect(outcomes.map(\.isDone) == [true])
    let text = outcomes.first?.text ?? ""
    #expect(text.hasPrefix("old removed; new added; web: importance "), "\(text)")
    #expect(world.reload(new).map(\.text) == ["nothing changed: the configuration is the same"])
  }

  @Test("A preview of a reload reports the same changes and makes none")
  func preview() {
    let world = World(["old", "web"])
    world.add("busy", isRunning: true)
    var web = world.worker("web")
    web.importance = 7
    let outcomes = world.preview(world.configuration([world.worker("new"), web]))
    #expect(world.calls.isEmpty)
    let text = outcomes.first?.text ?? ""
    #expect(
      text.hasPrefix("busy would be stopped and removed; old would be removed; new would be added"),
      "\(text)")
    #expect(text.contains("; web: importance "), "\(text)")
    let same = world.configuration(["old", "web", "busy"].map(world.worker))
    #expect(
      world.preview(same).map(\.text) == ["nothing would change: the configuration is the same"])
  }

  @Test("A worker that a reload removes while it is being adopted is removed after the adoption")
  func adopting() {
    let world = World(["web"])
    let id = WorkerID("web")
    world.adopting[id] = []
    let empty = world.configuration([])
    let text = world.reload(empty, allowEmpty: true).first?.text ?? ""
    #expect(text.hasPrefix("web removed (as soon as it has been adopted"), "\(text)")
    #expect(!world.calls.contains("remove web") && world.workers[id]?.isDeclared == false)
    // Nothing more is to be removed.
    #expect(world.reload(empty).map(\.text) == ["nothing changed: the configuration is the same"])
    world.adopt(id)
    #expect(world.calls.filter { $0 == "remove web" }.count == 1)
  }

  @Test("A worker that is declared again while it is being adopted stays")
  func declaredAgain() {
    let world = World(["web"])
    let id = WorkerID("web")
    world.adopting[id] = []
    _ = world.reload(world.configuration([]), allowEmpty: true)
    _ = world.reload(world.configuration([world.worker("web")]))
    world.adopt(id)
    #expect(!world.calls.contains("remove web") && world.workers[id]?.isDeclared == true)
  }

  @Test("A reload marks the changes that apply only at a running worker's next launch")
  func later() {
    let world = World(["idle"])
    world.add("busy", isRunning: true)
    let changed = ["idle", "busy"].map { name in
      var worker = world.worker(name)
      worker.command = ["/bin/other"]
      return worker
    }
    let text = world.reload(world.configuration(changed)).first?.text ?? ""
    let parts = text.split(separator: ";")
    #expect(parts.count == 2)
    #expect(parts.first?.contains("from its next start on") == false, "\(text)")
    #expect(parts.last?.hasSuffix("(command from its next start on)") == true, "\(text)")
  }

  @Test("A worker that has failed is started when its launch is corrected, and those that need it")
  func corrected() {
    let world = World(["bad", "needs", "other", "manual"])
    world.failed = Set(["bad", "needs", "other", "manual"].map { WorkerID($0) })
    var (bad, needs) = (world.worker("bad"), world.worker("needs"))
    var manual = world.worker("manual")
    (bad.command, manual.command) = (["/bin/other"], ["/bin/other"])
    manual.autostart = false
    needs.dependsOn = [Dependency("bad", .ready)]
    let workers = ["bad", "needs", "other", "manual"].map { WorkerID($0) }
    world.workers[workers[1]]?.configuration = needs
    let new = world.configuration([bad, needs, world.worker("other"), manual])
    let preview = world.preview(new).first?.text ?? ""
    #expect(preview.contains("bad: command (it has failed, and is started again)"), "\(preview)")
    _ = world.reload(new)
    #expect(world.calls.contains("start [\"bad\", \"needs\"]"), "\(world.calls)")
    // Nothing has changed since.
    _ = world.reload(new)
    #expect(world.calls.suffix(2).first == "start []", "\(world.calls)")
  }

  @Test(
    "The engine gets the new policy before changed workers, and those of `run` get it after that")
  func policy() {
    let world = World()
    world.add("job", isDeclared: false, isRunning: true)
    var policy = LifecyclePolicy(name: "other")
    policy.background.suspendAfter = .seconds(77)
    let outcomes = world.reload(DaemonConfiguration(policy: policy))
    #expect(world.driver.state.policy == policy)
    #expect(
      world.calls == [
        "policy other", "configuration of 0", "start []", "policy other of job", "all is taken",
      ])
    #expect(outcomes.map(\.isDone) == [true])
  }

  @Test("A configuration without workers that would stop some is refused, unless you allow it")
  func empty() {
    let world = World(["web"])
    let empty = world.configuration([])
    for outcomes in [world.reload(empty), world.preview(empty)] {
      #expect(outcomes.map(\.isDone) == [false])
      #expect(outcomes.first?.text.contains("stop and remove the only worker") == true)
    }
    #expect(world.calls.isEmpty)
    #expect(world.preview(empty, allowEmpty: true).map(\.text) == ["web would be removed"])
    #expect(world.reload(empty, allowEmpty: true).map(\.text) == ["web removed"])
    // None is declared any more: there is nothing to lose.
    #expect(world.reload(empty).map(\.isDone) == [true])
  }

  @Test("Errors, a hung file system and the daemon's end leave the configuration unchanged")
  func refusals() {
    let world = World(["web"])
    var outcomes: [ReloadOutcome] = []
    world.reloader.reload(allowEmpty: true) { outcomes.append($0) }
    world.readErrors()
    world.reloader.preview(allowEmpty: true) { outcomes.append($0) }
    world.readErrors()
    outcomes += world.reload(nil) + world.preview(nil)
    world.isEnding = true
    outcomes += world.reload(world.configuration([]), allowEmpty: true)
    #expect(outcomes.map(\.isDone) == [false, false, false, false, false])
    #expect(outcomes[0].text.contains("nothing changed: the configuration has errors"))
    #expect(outcomes[1].text.contains("nothing would change: the configuration has errors"))
    #expect(outcomes[2].text.contains("took longer than 10 s"))
    #expect(outcomes[3].text == outcomes[2].text)
    #expect(outcomes[4].text == "the daemon is ending")
    #expect(world.calls.isEmpty)
  }
}
