import Lifecycle
import Policy
import PolicyFile
import Testing

@testable import Daemon

@Suite("Workers that the configuration declares") struct DeclaredWorkersTests {
  private final class Host: DeclaredHost {
    var isClosing = false
    var stopped: Set<String> = []
    private(set) var calls: [String] = []
    private(set) var lines: [String] = []
    var answer = Answer(.done, "")

    func environment(of configuration: WorkerConfiguration) -> [String: String] {
      ["HOME": "/root"].merging(configuration.environment) { $1 }
    }
    func willAdd(_ id: WorkerID) { calls.append("add \(id)") }
    func wasStoppedByPerson(_ id: WorkerID) -> Bool { stopped.contains(id.name) }
    func start(
      _ id: WorkerID, _ verb: Request.Verb, occasion: Request.Occasion,
      then answer: @escaping (Answer) -> Void
    ) {
      calls.append("\(verb) \(id)")
      answer(self.answer)
    }
    func log(_ priority: DaemonLog.Priority, _ text: String) { lines.append(text) }
  }

  private let host = Host()
  private let world = SurvivorWorld()
  private let declared: DeclaredWorkers

  init() {
    declared = DeclaredWorkers(
      driver: world.driver, workers: world.host.workers, returning: world.returning, host: host)
  }

  private static func worker(
    _ name: String, needs: [String] = [], autostart: Bool = true
  ) -> WorkerConfiguration {
    .forTest(name) {
      $0.dependsOn = needs.map { Dependency($0) }
      $0.autostart = autostart
    }
  }

  private func begin(_ configurations: [WorkerConfiguration]) {
    declared.introduceWorkers(configurations)
    world.adoption.adoptSurvivors()
    declared.startWorkers(configurations)
  }

  private var started: [String] { host.calls.filter { !$0.hasPrefix("add") } }

  @Test("All declared workers are known, with their environment, before the first is started")
  func introduced() {
    begin([.forTest("web") { $0.environment = ["PORT": "80"] }, .forTest("db")])
    #expect(host.calls == ["add web", "add db", "start web", "start db"])
    let environment = world.host.workers[WorkerID("web")]?.environment
    #expect(environment == ["HOME": "/root", "PORT": "80"])
    #expect(world.state(of: "web") == .terminated)
  }

  @Test("A declared worker starts after its dependencies, and one without autostart doesn't start")
  func order() {
    begin([
      Self.worker("web", needs: ["api"]), Self.worker("api", needs: ["db"]),
      Self.worker("later", autostart: false), Self.worker("db"),
    ])
    #expect(started == ["start db", "start api", "start web"])
  }

  @Test("A worker that the operator stopped stays stopped if its restart rule says so")
  func stopped() {
    host.stopped = ["web", "db"]
    begin([
      .forTest("web") { $0.restart.condition = .unlessStopped },
      .forTest("db") { $0.restart.condition = .always },
    ])
    #expect(started == ["start db"])
    #expect(host.lines.count == 1 && host.lines[0].hasPrefix("web: stays stopped"))
  }

  @Test(
    "A worker that an earlier daemon left in the foreground is adopted before others are started")
  func front() {
    world.leave("web", "foreground")
    begin([Self.worker("web"), Self.worker("db")])
    #expect(started == ["restart web"], "it waits for its own adoption elsewhere")
    world.host.recovered("web", SurvivorRecovery(result: .success(.zero)))
    // `restart` displaces no other worker from the foreground.
    #expect(started == ["restart web", "restart db"])
  }

  @Test("A daemon that ends meanwhile starts no waiting workers")
  func closing() {
    world.leave("web", "foreground")
    begin([Self.worker("web"), Self.worker("db")])
    host.isClosing = true
    world.host.recovered("web", SurvivorRecovery(result: .success(.zero)))
    #expect(started == ["restart web"])
  }

  @Test("A worker that is running or unknown isn't started, and a refused start is logged")
  func refused() {
    world.leave("web")
    world.declare(.forTest("web"))
    world.adoption.adoptSurvivors()
    world.host.recovered("web", SurvivorRecovery(result: .success(.zero)))
    declared.startAutomatically(WorkerID("web"))
    declared.startAutomatically(WorkerID("nothing"))
    #expect(started.isEmpty)
    world.declare(.forTest("db"))
    host.answer = Answer(.failed, "db can't be started: no such program")
    declared.startAutomatically([Self.worker("db"), Self.worker("off", autostart: false)])
    #expect(started == ["start db"] && host.lines == ["db can't be started: no such program"])
  }
}
