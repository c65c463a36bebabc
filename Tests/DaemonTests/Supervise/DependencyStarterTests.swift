import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Workers that depend on others") struct DependencyStarterTests {
  private let world: RestartWorld
  private var starter: DependencyStarter { world.base.starter }
  private let web = WorkerID("web")

  init() throws { world = try RestartWorld() }

  /// How far a worker gets.
  private enum Step { case hasProcess, isReady, ends(Int32) }

  private func perform(_ step: Step, _ name: String = "db") throws {
    switch step {
    case .hasProcess:
      world.workers[WorkerID(name)]?.process = try .forTest(name)
      starter.advance()
    case .isReady: world.launch(name)
    case .ends(let status):
      world.workers[WorkerID(name)]?.process = nil
      world.end(name, .exited(.exited(status)))
    }
  }

  /// Adds workers, none of which is restarted.
  private func add(_ needs: [String: [Dependency]]) {
    for name in Set(needs.keys).union(needs.values.joined().map(\.worker)) {
      world.add(name, RestartRules(.never), dependsOn: needs[name] ?? [])
    }
  }

  private var asked: [String] { world.requests.map { "\($0.verb) \($0.worker)" } }

  @Test(arguments: [Dependency.Condition.started, .ready, .exitedOK, .exited])
  func `A worker starts when dependencies are as required`(condition: Dependency.Condition) throws {
    add(["web": [Dependency("db", condition)]])
    let steps: [Step] =
      switch condition {
      case .started: [.hasProcess]
      case .ready: [.hasProcess, .isReady]
      case .exitedOK: [.hasProcess, .isReady, .ends(0)]
      case .exited: [.hasProcess, .isReady, .ends(4)]
      }
    var answers: [Answer] = []
    starter.start(web) { answers.append($0) }
    #expect(asked == ["restart db"])
    for step in steps {
      #expect(starter.awaited(by: web)?.text == "waits for db (\(condition.rawValue))")
      try perform(step)
    }
    #expect(asked == ["restart db", "start web"] && answers.isEmpty)
    world.launch("web")
    #expect(answers.map(\.code) == [.done])
    #expect(starter.awaited(by: web)?.text == nil)
  }

  @Test func `A worker starts its dependencies first, and their dependencies before them`() throws {
    add(["web": [Dependency("api")], "api": [Dependency("db")]])
    starter.start(web) { _ in }
    #expect(asked == ["restart db"])
    try perform(.isReady)
    #expect(asked == ["restart db", "restart api"])
    try perform(.isReady, "api")
    #expect(asked == ["restart db", "restart api", "start web"])
  }

  @Test func `A worker that sleeps is ready, because a request wakes it`() {
    add(["web": [Dependency("db")]])
    let db = WorkerID("db")
    if let worker = world.workers[db] {
      world.driver.send(.adopted(db, worker.profile, .hibernated))
    }
    #expect(world.state(of: "db") == .hibernated)
    starter.start(web) { _ in }
    #expect(asked == ["start web"])
  }

  @Test func `A worker waits for one that doesn't exist`() {
    world.add("web", dependsOn: [Dependency("db")])
    starter.start(web) { _ in }
    #expect(asked == [] && starter.awaited(by: web)?.workers == ["db"])
  }

  @Test func `A start counts from its request, however long its dependencies take`() throws {
    add(["web": [Dependency("db")]])
    let moment = world.timers.now
    starter.start(web) { _ in }
    world.timers.advance(by: .seconds(9))
    try perform(.isReady)
    #expect(world.requests.last?.worker == web && world.requests.last?.asked == moment)
  }

  @Test func `Each start of a dependency has the worker that needs it as its reason`() throws {
    add(["web": [Dependency("db")]])
    starter.start(web, occasion: .autostart) { _ in }
    try perform(.isReady)
    #expect(world.requests.map(\.occasion) == [.dependency, .autostart])
  }

  @Test func `A worker that is requested twice is started once, for two answers`() throws {
    add(["web": [Dependency("db")]])
    var answers: [Answer] = []
    starter.start(web, .restart) { answers.append($0) }
    starter.start(web) { answers.append($0) }
    try perform(.isReady)
    #expect(asked == ["restart db", "start web"])
    world.launch("web")
    #expect(answers.map(\.code) == [.done, .done])
  }

  @Test func `A worker isn't started when a dependency has failed permanently`() throws {
    add(["web": [Dependency("job", .exitedOK)]])
    var answers: [Answer] = []
    starter.start(web) { answers.append($0) }
    try perform(.hasProcess, "job")
    try perform(.isReady, "job")
    try perform(.ends(4), "job")
    #expect(answers.map(\.code) == [.failed])
    #expect(answers.first?.text.contains("job has ended: exited with status 4") == true)
    let problem = world.supervisor.histories[web]?.problem
    #expect(problem?.code == "not_started")
    #expect(problem?.text.contains("exited with status 4") == true)
  }

  @Test func `A worker still waits when a dependency has failed and is started again`() throws {
    add(["web": [Dependency("db")]])
    world.setRules("db", .always)
    var answers: [Answer] = []
    starter.start(web) { answers.append($0) }
    world.end("db", .failed("no program of that name"))
    #expect(answers.isEmpty && starter.awaited(by: web)?.text != nil)
    world.timers.advance(by: .seconds(1))
    try perform(.isReady)
    #expect(asked == ["restart db", "restart db", "start web"])
  }

  @Test func `A worker isn't started when a dependency couldn't be launched`() {
    add(["web": [Dependency("db")]])
    var answers: [Answer] = []
    starter.start(web) { answers.append($0) }
    world.end("db", .failed("no program of that name"))
    #expect(answers.map(\.code) == [.failed])
    #expect(answers.first?.text.contains("no program of that name") == true)
  }

  @Test func `A worker isn't started when the start of a dependency is refused`() {
    add(["web": [Dependency("db")]])
    let db = WorkerID("db")
    if var profile = world.workers[db]?.profile {
      profile.leader = "the wrapper"
      world.driver.send(.profileChanged(db, profile))
    }
    var answers: [Answer] = []
    starter.start(web) { answers.append($0) }
    #expect(answers.map(\.code) == [.failed])
    #expect(answers.first?.text.contains("db is controlled by the wrapper") == true)
  }

  @Test(arguments: [Dependency.Condition.exitedOK, .ready])
  func `A worker isn't started if you stop its dependency`(condition: Dependency.Condition) throws {
    add(["web": [Dependency("job", condition)]])
    var answers: [Answer] = []
    starter.start(web) { answers.append($0) }
    if condition == .exitedOK { try perform(.isReady, "job") }
    world.end("job", .requested(.stop))
    #expect(answers.map(\.code) == [.failed])
  }

  @Test func `A dependency that is being stopped is started again when it has ended`() throws {
    add(["web": [Dependency("db")]])
    try perform(.isReady)
    let db = WorkerID("db")
    world.supervisor.operatorRequested(.stop, db)
    world.driver.request(.stop, db) { _ in }
    #expect(world.state(of: "db") == .terminating)
    starter.start(web) { _ in }
    #expect(asked == ["start db", "stop db"])
    world.end("db", .requested(.stop))
    #expect(asked == ["start db", "stop db", "restart db"])
    try perform(.isReady)
    #expect(asked.last == "start web")
  }

  @Test func `A waiting start that is cancelled is refused, and nothing of it is left`() throws {
    add(["web": [Dependency("db")], "api": [Dependency("db")]])
    var answers: [Answer] = []
    starter.start(web) { answers.append($0) }
    starter.start(WorkerID("api")) { answers.append($0) }
    starter.stopWaiting(web, "web was stopped before it was started")
    #expect(answers.map(\.text) == ["web was stopped before it was started"])
    starter.stopWaiting("the daemon is ending")
    #expect(answers.map(\.code) == [.refused, .refused])
    try perform(.isReady)
    #expect(asked == ["restart db"])
  }

  @Test func `Workers of an earlier daemon, or without dependencies, start without waiting`() {
    add(["web": [Dependency("db")]])
    world.base.returning.begin(web)
    starter.start(web) { _ in }
    starter.start(WorkerID("db")) { _ in }
    #expect(asked == ["start db"], "the engine doesn't know yet what web is")
    world.base.returning.finish(web)
    #expect(asked == ["start db", "start web"])
  }
}
