import Control
import Lifecycle
import Linux
import Testing

@testable import Daemon

@Suite("Verbs of the control socket about the daemon, and about new workers") struct DaemonVerbTests
{
  private typealias Verb = ControlRequest.Verb

  private let control: ControlWorld
  private var world: AdapterWorld { control.world }

  init() throws { control = try ControlWorld() }

  private func run(
    _ name: String?, _ command: [String] = ["/bin/true"], importance: Int? = nil,
    settings: [String]? = nil
  ) -> ControlWorld.Heard {
    var request = ControlRequest(id: 7, verb: .run, worker: name)
    request.launch = LaunchSpecification(
      command: command, directory: "/", environment: ["PORT": "8080"], importance: importance,
      settings: settings)
    return control.ask(request)
  }

  @Test func `The verb run launches an undeclared worker, and answers at its start`() throws {
    let heard = run("job", importance: 5)
    let worker = try #require(world.workers[WorkerID("job")])
    #expect(worker.configuration.importance == 5 && worker.environment == ["PORT": "8080"])
    #expect(!worker.isDeclared && heard.responses.isEmpty)
    #expect(world.notes.events == ["added", "request"])
    #expect(world.driver.state.state(of: worker.id) == .launching)
    world.driver.send(.launchFailed(worker.id, "no program of that name"))
    #expect(try control.only(heard).result == .failed)
  }

  @Test func `A run needs a valid name that isn't in use, a command and an importance`() throws {
    try world.add("web")
    let db = try world.add("db", .terminated)
    control.wrap("clangd-4")
    for name in ["a b", "a\nb", "a)b", "..", "a/b", "é", String(repeating: "n", count: 65)] {
      let response = try control.only(run(name))
      #expect(response.result == .badRequest && response.text.contains("not a valid worker name"))
    }
    for (heard, result, text) in [
      (run(nil), ControlResponse.Result.badRequest, "needs a name and a command"),
      (run("job", []), .badRequest, "needs a name and a command"),
      (run("job", importance: 101), .badRequest, "importance 101"),
      (run("web"), .refused, "web is already running"),
      (run("db"), .refused, "db is in the configuration"),
      (run("clangd-4"), .refused, "clangd-4 is the name of a wrapped worker"),
    ] {
      let response = try control.only(heard)
      #expect(response.result == result && response.text.contains(text), "\(text)")
    }
    #expect(world.asked.isEmpty)
    // A worker of an earlier `run` has ended, so its name is free.
    db.isDeclared = false
    _ = run("db")
    #expect(world.asked == ["start db"])
    world.ending.end()
    #expect(run("job").responses.map(\.text) == ["the daemon is ending"])
  }

  @Test func `Pressure is set within limits of levels and times, and auto ends it`() throws {
    func set(_ level: String?, _ seconds: Double? = nil) throws -> ControlResponse {
      var request = ControlRequest(id: 7, verb: .setPressure)
      (request.level, request.seconds) = (level, seconds)
      return try control.only(control.ask(request))
    }
    let driver = world.driver
    #expect(try set(nil).text == "`setPressure` needs a level")
    for (level, seconds) in [("high", 1.0), ("normal", 1), ("urgent", 0), ("urgent", 86_401)] {
      #expect(try set(level, seconds).result == .badRequest, "\(level) \(seconds)")
    }
    #expect(try set("auto").result == .done)
    #expect(driver.state.setPressure == nil)
    #expect(try set("urgent").text == "memory pressure is at least urgent for 30 s")
    #expect(driver.state.setPressure?.level == .urgent)
    #expect(try set("auto").text.hasPrefix("memory pressure is urgent, and returns to normal "))
    #expect(try set("auto").text.hasPrefix("no level is set any more: memory pressure is urgent, "))
    #expect(driver.state.setPressure == nil)
    world.ending.leave()
    #expect(try set("urgent").result == .refused)
  }

  @Test func `A reload and its preview are answered once, after the reading`() throws {
    try world.add("web", .terminated)
    for (verb, change) in [(Verb.previewReload, "web would be removed"), (.reload, "web removed")] {
      var request = ControlRequest(id: 7, verb: verb)
      let refused = control.ask(request)
      #expect(refused.responses.isEmpty, "the file may be in a file system that doesn't answer")
      let refusal = try control.only(refused)
      #expect(refusal.result == .refused && refusal.text.contains("--allow-empty"))
      request.allowEmpty = true
      let done = try control.only(control.ask(request))
      #expect(done.result == .done && done.text == change)
      #expect((world.workers.count == 0) == (verb == .reload))
    }
    control.file.content.withLock { $0 = nil }
    let response = try control.only(control.ask(.reload))
    #expect(response.result == .refused && response.text.contains("has errors"))
  }

  @Test(
    "The verbs adopt, release and reload of one worker are answered once with the daemon's answer",
    arguments: [
      (Verb.adopt, "`adopt` needs"), (.release, "not adopted"),
      (.reloadWorker, "web has no `reload_signal`"),
    ])
  func passedOn(verb: ControlRequest.Verb, text: String) throws {
    try world.add("web")
    let response = try control.only(control.ask(verb, "web"))
    #expect(response.result != .done && response.text.contains(text), "\(response.text)")
  }

  @Test func `A wrapper is registered under its connection until that ends`() throws {
    world.wrapped.processes[control.client] = 77
    var request = ControlRequest(id: 7, verb: .register)
    request.wrapper = WrapperWorld.report("job")
    #expect(try control.only(control.ask(request)).text == "known")
    request.wrapper = WrapperWorld.report("a/b")
    let response = try control.only(control.ask(request))
    #expect(response.result == .badRequest && response.text.hasPrefix("use "))
    #expect(world.wrappers.leads(WorkerID("job")))
    control.service.didDisconnect(control.client)
    #expect(!world.wrappers.leads(WorkerID("job")))
  }

  @Test func `A shutdown ends the daemon with its workers, and leave without them`() throws {
    try world.add("web")
    control.service.end(by: .leave)
    #expect(world.phase.isLeaving && !world.phase.isEnding && world.asked.isEmpty)
    control.service.end(by: .shutdown)
    #expect(world.phase.isEnding && world.asked == ["stop web"])
  }

  // MARK: undeclared workers

  @Test func `The settings of a run are the worker's, and a wrong one is refused`() throws {
    _ = run("job", settings: ["restart=always", "readiness.tcp=${PORT}", "hibernate.after=5m"])
    let launched = try #require(world.workers[WorkerID("job")]?.configuration)
    #expect(launched.restart.condition == .always && launched.readiness == .tcp(8080))
    #expect(launched.policy.hibernate.after == .seconds(300))
    #expect(launched.policy.name == "test", "over the machine's policy")
    let refused = try control.only(run("other", settings: ["restart=sometimes"]))
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
    #expect(try control.only(control.ask(.remove, "web")).text.contains("`dormouse rm -f web`"))
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

  @Test func `A worker that is started again while its removal waits for the disk stays`() throws {
    let web = try world.add("web", isDeclared: false)
    world.saved.isSaved = false
    let forced = control.ask(.removeRunning, "web")
    world.driver.send(.exited(web.id, .exited(0)))
    #expect(forced.responses.isEmpty)
    _ = run("web", settings: [])
    let next = try #require(world.workers[web.id])
    #expect(next !== web && world.driver.state.state(of: web.id)?.isAlive == true)
    world.saved.save()
    let response = try control.only(forced)
    #expect(response.result == .refused && response.text.contains("stays"), "\(response.text)")
    #expect(world.workers[web.id] === next)
  }
}
