import Control
import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("Verbs of the control socket about a worker") struct ControlServiceTests {
  /// The verbs about one worker that the engine answers.
  private static let engineVerbs: [ControlRequest.Verb] = [
    .start, .restart, .stop, .foreground, .background, .suspend, .hibernate, .wake, .terminate,
    .warn, .shadow, .enforce, .protect, .unprotect,
  ]

  private typealias Verb = ControlRequest.Verb

  private let world = ControlWorld()
  private var host: FakeControlHost { world.host }

  private func ask(_ request: ControlRequest) -> ControlWorld.Heard { world.ask(request) }

  private func ask(_ verb: Verb, _ worker: String? = nil) -> ControlWorld.Heard {
    world.ask(verb, worker)
  }

  private func only(_ heard: ControlWorld.Heard) throws -> ControlResponse {
    try world.only(heard)
  }

  @Test("A verb about a worker needs the worker's name", arguments: Self.engineVerbs)
  func needsWorker(verb: ControlRequest.Verb) throws {
    let response = try only(ask(verb))
    #expect(response.result == .badRequest)
    #expect(response.text == "`\(verb.rawValue)` needs a worker")
    #expect(host.calls.isEmpty)
  }

  @Test(
    "A verb about a worker is answered once, with what the engine says",
    arguments: Self.engineVerbs,
    [Answer.Code.done, .refused, .failed, .unknownWorker])
  func answered(verb: ControlRequest.Verb, code: Answer.Code) throws {
    let heard = ask(verb, "web")
    #expect(heard.responses.isEmpty)
    #expect(host.calls.last?.hasPrefix("\(verb.rawValue) web") == true)
    host.answer(code, "the engine's words")
    let response = try only(heard)
    #expect(response.result == ControlResponse.Result(code))
    #expect(response.text == "the engine's words")
  }

  @Test(
    "The verbs start and restart begin with the dependencies, and other verbs go to the engine alone"
  )
  func starts() {
    _ = ask(.start, "web")
    _ = ask(.restart, "web")
    _ = ask(.suspend, "web")
    #expect(
      host.calls == [
        "person: start web", "start web with those that it needs", "person: restart web",
        "restart web with those that it needs", "person: suspend web", "suspend web",
      ])
  }

  @Test(
    "Work that a client waits for is done before other work",
    arguments: [Verb.wake, .foreground, .stop])
  func urgent(verb: ControlRequest.Verb) {
    _ = ask(verb, "web")
    #expect(host.calls.first == "prioritize web")
    _ = ask(.background, "web")
    #expect(host.calls.filter { $0 == "prioritize web" }.count == 1)
  }

  @Test(
    "A daemon that is ending refuses a verb, unless it ends a worker", arguments: Self.engineVerbs)
  func ending(verb: ControlRequest.Verb) throws {
    host.isEnding = true
    let heard = ask(verb, "web")
    if verb == .stop || verb == .terminate {
      host.answer(.done, "stopped")
      #expect(try only(heard).result == .done)
    } else {
      let response = try only(heard)
      #expect(response.result == .refused && response.text == "the daemon is ending")
      #expect(host.calls.isEmpty)
    }
  }

  @Test(
    "A daemon that is leaving its workers refuses every verb about them",
    arguments: Self.engineVerbs)
  func leaving(verb: ControlRequest.Verb) throws {
    host.isLeaving = true
    #expect(try only(ask(verb, "web")).result == .refused)
    #expect(host.calls.isEmpty)
  }

  @Test("A verb that isn't for adopted workers is refused with the reason")
  func adopted() throws {
    host.refusals[WorkerID("web")] = "web was adopted"
    let response = try only(ask(.stop, "web"))
    #expect(response.result == .refused && response.text == "web was adopted")
    #expect(host.calls.isEmpty)
  }

  @Test(
    "A request about a wrapped worker is passed on to its wrapper",
    arguments: Self.engineVerbs.dropLast(2) + [.explain, .policy])
  func relayed(verb: ControlRequest.Verb) throws {
    host.wrapped = ["web"]
    let heard = ask(verb, "web")
    #expect(host.calls == ["relay \(verb.rawValue) web for \(Duration.seconds(600))"])
    host.respond(.done, "its wrapper's words")
    #expect(try only(heard).text == "its wrapper's words")
  }

  @Test("A wrapped worker is protected here: this daemon's ladder may terminate it")
  func protection() throws {
    host.wrapped = ["web"]
    let heard = ask(.protect, "web")
    #expect(host.calls == ["person: protect web", "protect web"])
    host.answer(.done, "web is protected")
    #expect(try only(heard).text == "web is protected")
  }

  @Test(
    "A suspended worker is hibernated after a look at the disk, and later requests wait for that"
  )
  func disk() throws {
    host.add("web", .suspended)
    let hibernate = ask(.hibernate, "web")
    let wake = ask(.wake, "web")
    let other = ask(.wake, "db")
    #expect(
      host.calls == ["read the disk", "prioritize db", "person: wake db", "wake db"])
    host.answer(.unknownWorker, "there is no worker named db")
    #expect(other.responses.count == 1)
    host.readDisk()
    #expect(
      host.calls.dropFirst(4) == [
        "person: hibernate web", "hibernate web", "prioritize web", "person: wake web", "wake web",
      ])
    host.answer(.refused, "it is wanted again")
    host.answer(.done, "web is awake")
    #expect(try only(hibernate).result == .refused)
    #expect(try only(wake).text == "web is awake")
    // The next one looks again.
    _ = ask(.hibernate, "web")
    #expect(host.calls.last == "read the disk")
  }

  @Test("A request that is carried out after its deadline is refused")
  func late() throws {
    var request = ControlRequest(id: 7, verb: .terminate, worker: "web")
    request.expires = host.now.nanoseconds - 1
    let response = try only(ask(request))
    #expect(response.result == .refused && response.text.contains("came too late"))
    #expect(host.calls.isEmpty)
    request.expires = host.now.nanoseconds
    _ = ask(request)
    #expect(host.calls.contains("terminate web"))
  }
}

@Suite("Verbs of the control socket about the daemon, and about new workers") struct DaemonVerbTests
{
  private typealias Verb = ControlRequest.Verb

  private let world = ControlWorld()
  private var host: FakeControlHost { world.host }

  private func ask(_ request: ControlRequest) -> ControlWorld.Heard { world.ask(request) }

  private func ask(_ verb: Verb, _ worker: String? = nil) -> ControlWorld.Heard {
    world.ask(verb, worker)
  }

  private func only(_ heard: ControlWorld.Heard) throws -> ControlResponse {
    try world.only(heard)
  }

  private func run(
    _ name: String?, _ command: [String] = ["/bin/true"], importance: Int? = nil
  ) -> ControlWorld.Heard {
    var request = ControlRequest(id: 7, verb: .run, worker: name)
    request.launch = LaunchSpecification(
      command: command, directory: "/", environment: ["A": "b"], importance: importance)
    return ask(request)
  }

  @Test("The verb run launches a worker that isn't declared, and is answered when it has started")
  func runs() throws {
    let heard = run("job", importance: 5)
    #expect(host.launched.map(\.configuration.name) == ["job"])
    #expect(host.launched.first?.configuration.importance == 5)
    #expect(host.launched.first?.environment == ["A": "b"])
    #expect(heard.responses.isEmpty)
    host.answer(.failed, "job: no program of that name")
    #expect(try only(heard).result == .failed)
  }

  @Test(
    "`run` is refused without a valid name, command and importance, and with a name that is in use")
  func runRefusals() throws {
    host.add("web")
    host.known[WorkerID("db")] = WorkerFacts(policy: LifecyclePolicy(name: "test"))
    host.wrapped = ["clangd-4"]
    for (heard, result, words) in [
      (run(nil), ControlResponse.Result.badRequest, "needs a name and a command"),
      (run("job", []), .badRequest, "needs a name and a command"),
      (run("a/b"), .badRequest, "not a valid worker name"),
      (run("job", importance: 101), .badRequest, "importance 101"),
      (run("web"), .refused, "web is already running"),
      (run("db"), .refused, "db is in the configuration"),
      (run("clangd-4"), .refused, "clangd-4 is the name of a wrapped worker"),
    ] {
      let response = try only(heard)
      #expect(response.result == result && response.text.contains(words), "\(words)")
    }
    #expect(host.launched.isEmpty)
    // A worker of an earlier `run` has ended: its name is free.
    host.known[WorkerID("db")]?.isDeclared = false
    _ = run("db")
    #expect(host.launched.count == 1)
    host.isEnding = true
    #expect(run("job").responses.map(\.text) == ["the daemon is ending"])
  }

  @Test("`pressure set` accepts levels and times within its limits, and `auto` ends it")
  func pressure() throws {
    func set(_ level: String?, _ seconds: Double? = nil) throws -> ControlResponse {
      var request = ControlRequest(id: 7, verb: .setPressure)
      (request.level, request.seconds) = (level, seconds)
      return try only(ask(request))
    }
    #expect(try set(nil).text == "`setPressure` needs a level")
    for (level, seconds) in [("high", 1.0), ("normal", 1), ("urgent", 0), ("urgent", 86_401)] {
      #expect(try set(level, seconds).result == .badRequest, "\(level) \(seconds)")
    }
    #expect(try set("auto").result == .done)
    #expect(host.driver.state.setPressure == nil)
    #expect(try set("urgent").text == "memory pressure is at least urgent for 30 s")
    #expect(host.driver.state.setPressure?.level == .urgent)
    #expect(try set("auto").text.hasPrefix("memory pressure is urgent, and returns to normal "))
    #expect(try set("auto").text.hasPrefix("no level is set any more: memory pressure is urgent, "))
    #expect(host.driver.state.setPressure == nil)
    host.isLeaving = true
    #expect(try set("urgent").result == .refused)
  }

  @Test(
    "The verb reload and its preview are answered once, when the configuration was read",
    arguments: [true, false])
  func reload(allowEmpty: Bool) throws {
    for (verb, call) in [(Verb.reload, "reload"), (.previewReload, "preview")] {
      var request = ControlRequest(id: 7, verb: verb)
      request.allowEmpty = allowEmpty ? true : nil
      let done = ask(request)
      #expect(host.calls.last == call + (allowEmpty ? " --allow-empty" : ""))
      host.report((true, "nothing has changed"))
      #expect(try only(done).result == .done)
      let refused = ask(request)
      host.report((false, "it has errors"))
      let response = try only(refused)
      #expect(response.result == .refused && response.text == "it has errors")
    }
  }

  @Test(
    "The verbs adopt, release and reload of one worker are answered once with the daemon's answer",
    arguments: [Verb.adopt, .release, .reloadWorker])
  func passedOn(verb: ControlRequest.Verb) throws {
    let heard = ask(verb, "web")
    #expect(host.calls == ["\(verb.rawValue) web"])
    host.respond(.failed, "it didn't work")
    #expect(try only(heard).result == .failed)
  }

  @Test("A wrapper is registered under its connection until that ends")
  func register() throws {
    #expect(try only(ask(.register)).text == "known")
    host.registration = "a name has 1–64 letters"
    let response = try only(ask(.register))
    #expect(response.result == .badRequest && response.text == "a name has 1–64 letters")
    world.service.hasLeft(world.client)
    #expect(host.calls == ["register 1", "register 1", "client 1 has left"])
  }

  @Test("The verb shutdown ends the daemon with its workers, and leave ends it without them")
  func end() {
    world.service.end(by: .leave)
    #expect(host.calls == ["leave"])
    world.service.end(by: .shutdown)
    #expect(host.calls == ["leave", "end"])
  }
}
