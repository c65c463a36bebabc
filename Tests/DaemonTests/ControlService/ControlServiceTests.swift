import Control
import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Verbs of the control socket about a worker") struct ControlServiceTests {
  /// The verbs about one worker that the engine answers.
  private static let engineVerbs: [ControlRequest.Verb] = [
    .start, .restart, .stop, .foreground, .background, .suspend, .hibernate, .wake, .terminate,
    .warn, .trim, .fill, .shadow, .enforce, .protect, .unprotect,
  ]

  private typealias Verb = ControlRequest.Verb

  private let control: ControlWorld
  private var world: AdapterWorld { control.world }
  private let web = WorkerID("web")

  init() throws { control = try ControlWorld() }

  @Test func `A verb about a worker needs the worker's name`() throws {
    for verb in Self.engineVerbs {
      let response = try control.only(control.ask(verb))
      #expect(response.result == .badRequest)
      #expect(response.text == "`\(verb.rawValue)` needs a worker")
    }
    #expect(world.notes.events.isEmpty)
  }

  @Test(arguments: [nil, WorkerState.terminated, .background, .suspended])
  func `A verb about a worker gets one answer, with the engine's text`(state: WorkerState?) throws {
    for verb in Self.engineVerbs {
      let id = WorkerID("w-\(verb.rawValue)")
      if let state { try world.add(id.name, state) }
      world.notes.forget()
      let response = try control.onlyInTheEnd(control.ask(verb, id.name), of: id)
      let answer = try #require(world.notes.answers.last)
      #expect(world.asked == ["\(verb.rawValue) \(id)"])
      #expect(response.result.rawValue == answer.code.rawValue, "\(verb)")
      #expect(response.text.hasPrefix(answer.text), "\(verb)")
      #expect((response.result == .unknownWorker) == (state == nil), "\(verb)")
    }
  }

  @Test(arguments: [Verb.start, .restart])
  func `Start and restart begin with dependencies, others don't`(verb: ControlRequest.Verb) throws {
    try world.add("db", .terminated)
    try world.add("web", .terminated) { $0.dependsOn = [Dependency("db")] }
    _ = control.ask(verb, "web")
    #expect(world.asked == ["restart db"])
    _ = control.ask(.suspend, "web")
    #expect(world.asked == ["restart db", "suspend web"])
  }

  @Test func `A stop by request calls off the restart that was planned`() throws {
    let worker = try world.add("web", .terminated) { $0.restart = RestartWorld.rules }
    world.reportEnd(worker, RestartWorld.failure)
    _ = control.ask(.background, "web")
    #expect(world.restarts.histories[web]?.plan != nil)
    _ = control.ask(.stop, "web")
    #expect(world.restarts.histories[web]?.plan == nil)
  }

  @Test(arguments: [Verb.wake, .foreground, .stop])
  func `Work that a client waits for is done before other work`(verb: ControlRequest.Verb) {
    _ = control.ask(verb, "web")
    #expect(control.memory.prioritized == 1)
    _ = control.ask(.background, "web")
    #expect(control.memory.prioritized == 1)
  }

  @Test func `A daemon that is ending refuses a verb, unless it ends a worker`() throws {
    try world.add("web")
    world.ending.end()
    world.notes.forget()
    let ends: [Verb] = [.stop, .terminate]
    for verb in Self.engineVerbs where !ends.contains(verb) {
      let response = try control.only(control.ask(verb, "web"))
      #expect(response.result == .refused && response.text == "the daemon is ending")
    }
    #expect(world.asked.isEmpty)
    let heard = ends.map { control.ask($0, "web") }
    #expect(heard.allSatisfy { $0.responses.isEmpty })
    world.driver.send(.exited(web, .exited(0)))
    for each in heard { #expect(try control.only(each).result == .done) }
  }

  @Test func `A daemon that is leaving its workers refuses every verb about them`() throws {
    try world.add("web")
    world.ending.leave()
    for verb in Self.engineVerbs {
      #expect(try control.only(control.ask(verb, "web")).result == .refused)
    }
    #expect(world.asked.isEmpty)
  }

  @Test func `A verb that isn't for adopted workers is refused with the reason`() throws {
    try world.add("web").external = ExternalWorker()
    let response = try control.only(control.ask(.stop, "web"))
    #expect(response.result == .refused && response.text.hasPrefix("web was adopted: "))
    #expect(world.asked.isEmpty)
  }

  @Test func `A request about a wrapped worker is passed on to its wrapper`() throws {
    control.wrap("web")
    for verb in Self.engineVerbs.dropLast(2) + [.explain, .policy] {
      let heard = control.ask(verb, "web")
      #expect(world.wrapped.asked.last == "\(verb.rawValue) web" && world.asked.isEmpty)
      #expect(world.wrapped.asks.first?.timeout == .seconds(600))
      world.wrapped.answer(.done, "its wrapper's words")
      #expect(heard.responses.map(\.text) == ["its wrapper's words"])
    }
  }

  @Test func `A wrapped worker is protected here: this daemon's ladder may terminate it`() throws {
    control.wrap("web")
    #expect(try control.only(control.ask(.protect, "web")).result == .done)
    #expect(world.asked == ["protect web"] && world.wrapped.asked.isEmpty)
  }

  @Test func `A worker is hibernated after a reading of the disk, before later requests`() throws {
    try world.add("web", .suspended)
    let hibernate = control.ask(.hibernate, "web")
    let wake = control.ask(.wake, "web")
    let other = control.ask(.wake, "db")
    #expect(world.asked == ["wake db"] && other.responses.map(\.result) == [.unknownWorker])
    try world.turn { world.asked.count == 3 }
    #expect(world.asked == ["wake db", "hibernate web", "wake web"])
    #expect(world.notes.events.prefix(3) == ["request", "disk", "request"])
    #expect(control.memory.prioritized == 2)
    world.driver.send(.hibernateFailed(web, "it is wanted again", permanent: false))
    world.driver.send(.resumed(web, .zero))
    #expect(try control.only(hibernate).result != .done)
    #expect(try control.only(wake).result == .done)
    // The next request reads the disk again.
    try world.add("api", .suspended)
    _ = control.ask(.hibernate, "api")
    #expect(world.notes.events.isEmpty)
    try world.turn { world.notes.events == ["disk", "request"] }
  }

  @Test func `A request that is carried out after its deadline is refused`() throws {
    try world.add("web")
    var request = ControlRequest(id: 7, verb: .terminate, worker: "web")
    request.expires = world.timers.now.nanoseconds - 1
    let response = try control.only(control.ask(request))
    #expect(response.result == .refused && response.text.contains("came too late"))
    #expect(world.asked.isEmpty)
    request.expires = world.timers.now.nanoseconds
    _ = control.ask(request)
    #expect(world.asked == ["terminate web"])
  }
}
