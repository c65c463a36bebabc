import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Workers that depend on others") struct DependencyStarterTests {
  /// Workers that do what a test says.
  private final class World: DependencyHost {
    var now = Instant(nanoseconds: 1)
    var needs: [String: [Dependency]] = [:]
    var standings: [String: DependencyStanding] = [:]
    private(set) var requests: [(verb: Request.Verb, name: String, asked: Instant?)] = []
    private(set) var occasions: [String: Request.Occasion] = [:]
    private var answers: [String: (Answer) -> Void] = [:]
    private(set) var problems: [String: String] = [:]
    private(set) lazy var starter = DependencyStarter(self)

    init(_ needs: [String: [Dependency]]) {
      self.needs = needs
      let names = Set(needs.keys).union(needs.values.joined().map(\.worker))
      for name in names { standings[name] = DependencyStanding(state: .terminated) }
    }

    func dependencies(of id: WorkerID) -> [Dependency] { needs[id.name] ?? [] }
    func standing(of id: WorkerID) -> DependencyStanding {
      standings[id.name] ?? DependencyStanding(state: nil)
    }
    func request(
      _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, occasion: Request.Occasion?,
      then answer: @escaping (Answer) -> Void
    ) {
      requests.append((verb, id.name, asked))
      occasions[id.name] = occasion
      answers[id.name] = answer
    }
    func record(problem: String, of id: WorkerID) { problems[id.name] = problem }

    var asked: [String] { requests.map { "\($0.verb) \($0.name)" } }

    func answer(_ name: String, _ code: Answer.Code = .done, _ text: String = "") {
      answers.removeValue(forKey: name)?(Answer(code, text))
    }

    /// It has come so far.
    func set(_ name: String, _ standing: DependencyStanding) {
      standings[name] = standing
      starter.advance()
    }
  }

  private static let ended = DependencyStanding(
    state: .terminated, lastEnd: .init(succeeded: true, wasStopped: false), lastExit: "it exited")
  private static let failed = DependencyStanding(
    state: .terminated, lastEnd: .init(succeeded: false, wasStopped: false),
    lastExit: "exited with status 4")

  @Test("A worker starts when its dependencies have reached the required states")
  func order() {
    for (condition, steps) in [
      (Dependency.Condition.started, [DependencyStanding(state: .launching, hasProcess: true)]),
      (
        .ready,
        [
          DependencyStanding(state: .launching, hasProcess: true),
          DependencyStanding(state: .background, hasProcess: true),
        ]
      ), (.exitedOK, [DependencyStanding(state: .background, hasProcess: true), Self.ended]),
      (.exited, [DependencyStanding(state: .background, hasProcess: true), Self.failed]),
    ] {
      let world = World(["web": [Dependency("db", condition)]])
      var answers: [Answer] = []
      world.starter.start(WorkerID("web")) { answers.append($0) }
      #expect(world.asked == ["restart db"], "\(condition)")
      for step in steps {
        let awaited = world.starter.awaited(by: WorkerID("web"))?.text
        #expect(awaited == "waits for db (\(condition.rawValue))")
        world.set("db", step)
      }
      #expect(world.asked == ["restart db", "start web"], "\(condition)")
      world.answer("web")
      #expect(answers.map(\.code) == [.done])
      #expect(world.starter.awaited(by: WorkerID("web"))?.text == nil)
    }
  }

  @Test("A worker starts its dependencies first, and their dependencies before them")
  func chain() {
    let world = World(["web": [Dependency("api")], "api": [Dependency("db")]])
    world.starter.start(WorkerID("web")) { _ in }
    #expect(world.asked == ["restart db"])
    world.set("db", DependencyStanding(state: .background))
    #expect(world.asked == ["restart db", "restart api"])
    world.set("api", DependencyStanding(state: .hibernated))
    // A worker that sleeps is ready: a request wakes it.
    #expect(world.asked == ["restart db", "restart api", "start web"])
  }

  @Test("A start counts as requested when the request came, however long it waits for dependencies")
  func asked() {
    let world = World(["web": [Dependency("db")]])
    world.now = Instant(nanoseconds: 5)
    world.starter.start(WorkerID("web")) { _ in }
    world.now = Instant(nanoseconds: 900)
    world.set("db", DependencyStanding(state: .foreground))
    #expect(world.requests.last?.asked == Instant(nanoseconds: 5))
  }

  @Test("Each start of a dependency has the worker that needs it as its reason")
  func occasions() {
    let world = World(["web": [Dependency("db")]])
    world.starter.start(WorkerID("web"), occasion: .autostart) { _ in }
    world.set("db", DependencyStanding(state: .foreground))
    #expect(world.occasions == ["db": .dependency, "web": .autostart])
  }

  @Test("A worker that is requested twice is started once, and both requests are answered")
  func twice() {
    let world = World(["web": [Dependency("db")]])
    var answers: [Answer] = []
    world.starter.start(WorkerID("web"), .restart) { answers.append($0) }
    world.starter.start(WorkerID("web")) { answers.append($0) }
    world.set("db", DependencyStanding(state: .foreground))
    #expect(world.asked == ["restart db", "start web"])
    world.answer("web")
    #expect(answers.map(\.code) == [.done, .done])
  }

  @Test("A worker isn't started when a dependency has failed permanently, and the answer says why")
  func failure() {
    let world = World(["web": [Dependency("job", .exitedOK)]])
    var answers: [Answer] = []
    world.starter.start(WorkerID("web")) { answers.append($0) }
    world.set("job", DependencyStanding(state: .launching, hasProcess: true))
    world.answer("job")
    world.set("job", Self.failed)
    #expect(answers.map(\.code) == [.failed])
    #expect(answers.first?.text.contains("job has ended: exited with status 4") == true)
    #expect(world.problems["web"]?.contains("exited with status 4") == true)
  }

  @Test("A worker still waits when a dependency has failed and will be started again")
  func backOff() {
    let world = World(["web": [Dependency("db")]])
    var answers: [Answer] = []
    world.starter.start(WorkerID("web")) { answers.append($0) }
    var standing = Self.failed
    standing.willRestart = true
    world.set("db", standing)
    world.answer("db", .failed, "exited with status 4")
    #expect(answers.isEmpty && world.starter.awaited(by: WorkerID("web"))?.text != nil)
    world.set("db", DependencyStanding(state: .foreground))
    #expect(world.asked == ["restart db", "start web"])
  }

  @Test("A worker isn't started when a dependency couldn't be launched")
  func launchFailure() {
    let world = World(["web": [Dependency("db")]])
    var answers: [Answer] = []
    world.starter.start(WorkerID("web")) { answers.append($0) }
    world.answer("db", .failed, "db: no program of that name")
    #expect(answers.map(\.code) == [.failed])
    #expect(answers.first?.text.contains("no program of that name") == true)
  }

  @Test("A worker isn't started when you stop a dependency that was started for it")
  func stopped() {
    let world = World(["web": [Dependency("job", .exitedOK)]])
    var answers: [Answer] = []
    world.starter.start(WorkerID("web")) { answers.append($0) }
    world.set(
      "job",
      DependencyStanding(state: .terminated, lastEnd: .init(succeeded: false, wasStopped: true)))
    #expect(answers.map(\.code) == [.failed])
  }

  @Test("A waiting start that is cancelled is refused, and nothing of it is left")
  func cancelled() {
    let world = World(["web": [Dependency("db")], "api": [Dependency("db")]])
    var answers: [Answer] = []
    world.starter.start(WorkerID("web")) { answers.append($0) }
    world.set("db", DependencyStanding(state: .launching))
    world.starter.start(WorkerID("api")) { answers.append($0) }
    world.starter.stopWaiting(WorkerID("web"), "web was stopped before it was started")
    #expect(answers.map(\.text) == ["web was stopped before it was started"])
    world.starter.stopWaiting("the daemon is ending")
    #expect(answers.map(\.code) == [.refused, .refused])
    world.set("db", DependencyStanding(state: .foreground))
    #expect(world.asked == ["restart db"])
  }

  @Test(
    "Workers that an earlier daemon left start without waiting, and so do workers without dependencies"
  )
  func adopted() {
    let world = World(["web": [Dependency("db")]])
    world.standings["web"]?.isAdopting = true
    world.starter.start(WorkerID("web")) { _ in }
    world.starter.start(WorkerID("db")) { _ in }
    #expect(world.asked == ["start web", "start db"])
  }
}
