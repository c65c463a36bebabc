import Control
import Lifecycle
import Linux
import Testing

@testable import Daemon

@Suite("Settings and removal of workers of `run`") struct UndeclaredWorkersTests {
  private typealias Verb = ControlRequest.Verb

  private let control: ControlWorld
  private var world: AdapterWorld { control.world }

  init() throws { control = try ControlWorld() }

  @Test func `The settings of a run are the worker's, and a wrong one is refused`() throws {
    var request = ControlRequest(id: 7, verb: .run, worker: "job")
    request.launch = LaunchSpecification(
      command: ["/bin/true"], directory: "/", environment: ["PORT": "8080"],
      settings: ["restart=always", "readiness.tcp=${PORT}", "hibernate.after=5m"])
    _ = control.ask(request)
    let launched = try #require(world.workers[WorkerID("job")]?.configuration)
    #expect(launched.restart.condition == .always && launched.readiness == .tcp(8080))
    #expect(launched.policy.hibernate.after == .seconds(300))
    #expect(launched.policy.name == "test", "over the machine's policy")
    request.worker = "other"
    request.launch?.settings = ["restart=sometimes"]
    let refused = try control.only(control.ask(request))
    #expect(refused.result == .badRequest && refused.text.contains("restart=sometimes"))
    #expect(world.workers.count == 1)
  }

  @Test func `Only undeclared workers that have ended are removed`() throws {
    try world.add("web", isDeclared: false)
    try world.add("db", .terminated)
    try world.add("job", .terminated, isDeclared: false)
    try world.add("redis", isDeclared: false).external = ExternalWorker()
    control.wrap("clangd-4")
    for verb in [Verb.remove, .removeRunning] {
      for (worker, result, text) in [
        (nil, ControlResponse.Result.badRequest, "needs a worker"),
        ("none", .unknownWorker, "no worker named none"),
        ("db", .refused, "db is in the configuration"),
        ("redis", .refused, "`dormouse release redis`"),
        ("clangd-4", .refused, "wrapped"),
      ] {
        let response = try control.only(control.ask(verb, worker))
        #expect(response.result == result && response.text.contains(text), "\(response)")
      }
    }
    let running = try control.only(control.ask(.remove, "web"))
    #expect(running.text.contains("`dormouse rm -f web`"))
    #expect(world.notes.events.isEmpty)
    let log = try world.scratch.write("state/logs/job.log", "its last words")
    let removed = try control.only(control.ask(.remove, "job"))
    #expect(removed.text == "job and its log are removed")
    #expect(isAbsent(log) && world.workers[WorkerID("job")] == nil)
    #expect(world.driver.state.state(of: WorkerID("job")) == nil)
  }

  @Test func `One that runs is stopped before its removal, and a log that stays is named`() throws {
    let web = try world.add("web", isDeclared: false)
    // A directory can't be removed like a file.
    try world.scratch.write("state/logs/web.log/file", "")
    let forced = control.ask(.removeRunning, "web")
    #expect(world.asked == ["stop web"] && world.workers[web.id] === web)
    world.driver.send(.exited(web.id, .exited(0)))
    let response = try control.only(forced)
    #expect(response.result == .done)
    #expect(response.text.hasPrefix("web is removed, but its log stays: "), "\(response.text)")
    #expect(world.workers[web.id] == nil)
  }
}
