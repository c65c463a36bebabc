import Lifecycle
import Policy
import PolicyFile
import Testing

@testable import Daemon

@Suite("A configuration that is read again") struct ConfigurationReloaderTests {
  private let world: AdapterWorld
  /// Readings of the configuration that are answered when a test decides.
  private let file = Recorded<(ParseResult<DaemonConfiguration>?) -> Void>()
  private let reloader: ConfigurationReloader
  private let web = WorkerID("web")

  init() throws {
    world = try AdapterWorld()
    reloader = world.makeReloader { [file] in file.all.append($0) }
  }

  private func configuration(_ workers: WorkerConfiguration...) -> DaemonConfiguration {
    DaemonConfiguration(policy: world.driver.state.policy, workers: workers)
  }

  /// A worker of the configuration that has no autostart.
  private func declared(
    _ name: String, _ change: (inout WorkerConfiguration) -> Void = { _ in }
  ) -> WorkerConfiguration {
    .forTest(name) {
      $0.autostart = false
      change(&$0)
    }
  }

  @discardableResult
  private func add(
    _ name: String, _ state: WorkerState = .terminated,
    _ change: (inout WorkerConfiguration) -> Void = { _ in }
  ) throws -> WorkerUnit {
    try world.add(name, state) {
      $0.autostart = false
      change(&$0)
    }
  }

  /// - Parameter new: what is read; nil if the file system doesn't answer.
  private func reload(
    _ new: DaemonConfiguration?, allowEmpty: Bool = false, isPreview: Bool = false
  ) -> [ReloadOutcome] {
    var outcomes: [ReloadOutcome] = []
    reloader.reload(allowEmpty: allowEmpty, isPreview: isPreview) { outcomes.append($0) }
    file.all.removeFirst()(new.map { ParseResult(value: $0, diagnostics: []) })
    return outcomes
  }

  private func preview(_ new: DaemonConfiguration?, allowEmpty: Bool = false) -> [ReloadOutcome] {
    reload(new, allowEmpty: allowEmpty, isPreview: true)
  }

  @Test func `A reload removes, adds and changes workers before it starts any`() throws {
    for name in ["old", "web", "same"] { try add(name) }
    world.notes.forget()
    let new = configuration(
      declared("new") { $0.autostart = true }, declared("web") { $0.importance = 7 },
      declared("same"))
    let outcomes = reload(new)
    #expect(
      world.notes.events == ["removed", "added", "profileChanged", "request", "deadline"])
    #expect(world.asked == ["start new"] && world.workers[WorkerID("old")] == nil)
    #expect(world.workers[web]?.configuration.importance == 7)
    #expect(world.workers[WorkerID("new")]?.environment["HOME"] == "/root")
    #expect(world.configuration.current == new)
    #expect(outcomes.map(\.isDone) == [true])
    let text = outcomes.first?.text ?? ""
    #expect(text.hasPrefix("old removed; new added; web: importance "), "\(text)")
    #expect(reload(new).map(\.text) == ["nothing changed: the configuration is the same"])
  }

  @Test func `A preview of a reload reports the same changes and makes none`() throws {
    for name in ["old", "web"] { try add(name) }
    try add("busy", .background)
    let outcomes = preview(configuration(declared("new"), declared("web") { $0.importance = 7 }))
    #expect(world.notes.events.isEmpty && world.workers.count == 3)
    let text = outcomes.first?.text ?? ""
    #expect(
      text.hasPrefix("busy would be stopped and removed; old would be removed; new would be added"),
      "\(text)")
    #expect(text.contains("; web: importance "), "\(text)")
    let same = configuration(declared("old"), declared("web"), declared("busy"))
    #expect(preview(same).map(\.text) == ["nothing would change: the configuration is the same"])
  }

  @Test func `Keys that apply at the daemon's next start are named, and not called the same`() {
    var new = configuration()
    new.journal.keep = 3
    new.socket = "/run/other.sock"
    let next = "(from the daemon's next start on)"
    for (outcomes, verb) in [(preview(new), "would change"), (reload(new), "changed")] {
      #expect(outcomes.map(\.text) == ["socket \(verb) \(next); journal \(verb) \(next)"])
    }
    #expect(reload(new).map(\.text) == ["nothing changed: the configuration is the same"])
  }

  @Test func `A worker that a reload removes during its adoption is removed after it`() throws {
    let worker = try add("web")
    world.returning.begin(web)
    let text = reload(configuration(), allowEmpty: true).first?.text ?? ""
    #expect(text.hasPrefix("web removed (as soon as it has been adopted"), "\(text)")
    #expect(world.workers[web] === worker && !worker.isDeclared)
    // No other worker is to be removed.
    let again = reload(configuration()).map(\.text)
    #expect(again == ["nothing changed: the configuration is the same"])
    world.driver.send(.adopted(web, worker.profile, .background))
    world.returning.finish(web)
    #expect(world.asked == ["stop web"])
    world.driver.send(.exited(web, .exited(0)))
    #expect(world.driver.state.state(of: web) == nil)
  }

  @Test func `A worker that is declared again while it is being adopted stays`() throws {
    let worker = try add("web")
    world.returning.begin(web)
    _ = reload(configuration(), allowEmpty: true)
    _ = reload(configuration(declared("web")))
    world.driver.send(.adopted(web, worker.profile, .background))
    world.returning.finish(web)
    #expect(world.asked == [] && worker.isDeclared)
    #expect(world.driver.state.state(of: web) == .background)
  }

  @Test func `A reload marks changes that apply only at a running worker's next launch`() throws {
    try add("idle")
    try add("busy", .background)
    let new = ["idle", "busy"].map { declared($0) { $0.command = ["/bin/other"] } }
    let text = reload(configuration(new[0], new[1])).first?.text ?? ""
    let parts = text.split(separator: ";")
    #expect(parts.count == 2)
    #expect(parts.first?.contains("from its next start on") == false, "\(text)")
    #expect(parts.last?.hasSuffix("(command from its next start on)") == true, "\(text)")
  }

  @Test func `A failed worker is started when its launch is corrected`() throws {
    let needs = { (worker: inout WorkerConfiguration) in
      worker.dependsOn = [Dependency("bad", .ready)]
      worker.autostart = true
    }
    let automatic = { (worker: inout WorkerConfiguration) in worker.autostart = true }
    for (name, change) in [("bad", automatic), ("needs", needs), ("other", automatic)] {
      try world.reportEnd(add(name, .terminated, change), RestartWorld.failure)
    }
    try world.reportEnd(add("manual"), RestartWorld.failure)
    let new = configuration(
      declared("bad") {
        automatic(&$0)
        $0.command = ["/bin/other"]
      }, declared("needs", needs), declared("other", automatic),
      declared("manual") { $0.command = ["/bin/other"] })
    let text = preview(new).first?.text ?? ""
    #expect(text.contains("bad: command (it has failed, and is started again)"), "\(text)")
    #expect(world.asked == [])
    _ = reload(new)
    #expect(world.asked == ["start bad"], "\(world.asked)")
    #expect(world.starter.awaited(by: WorkerID("needs"))?.workers == ["bad"])
    // Nothing has changed since.
    _ = reload(new)
    #expect(world.asked == ["start bad"], "\(world.asked)")
  }

  @Test func `The engine gets a new policy before changed workers, and undeclared ones`() throws {
    let job = try world.add("job", isDeclared: false)
    var policy = LifecyclePolicy(name: "other")
    policy.background.suspendAfter = .seconds(77)
    var seen: [LifecyclePolicy] = []
    world.notes.whenHandled = { [world] in
      if case .profileChanged = $0 { seen.append(world.driver.state.policy) }
    }
    let outcomes = reload(DaemonConfiguration(policy: policy))
    #expect(world.driver.state.policy == policy && seen == [policy])
    #expect(world.notes.events == ["profileChanged", "deadline"])
    #expect(job.configuration.policy == policy)
    #expect(outcomes.map(\.isDone) == [true])
  }

  @Test func `A configuration without workers is refused if it would stop some`() throws {
    try add("web")
    let empty = configuration()
    for outcomes in [reload(empty), preview(empty)] {
      #expect(outcomes.map(\.isDone) == [false])
      #expect(outcomes.first?.text.contains("stop and remove the only worker") == true)
    }
    #expect(world.notes.events.isEmpty && world.workers.count == 1)
    #expect(preview(empty, allowEmpty: true).map(\.text) == ["web would be removed"])
    #expect(reload(empty, allowEmpty: true).map(\.text) == ["web removed"])
    // No worker is declared any more, so an empty configuration removes nothing.
    #expect(reload(empty).map(\.isDone) == [true])
  }

  @Test func `Errors, a hung file system and the daemon's end change nothing`() throws {
    let worker = try add("web", .background)
    var outcomes: [ReloadOutcome] = []
    reloader.reload(allowEmpty: true) { outcomes.append($0) }
    reloader.reload(allowEmpty: true, isPreview: true) { outcomes.append($0) }
    for answer in file.all { answer(ParseResult(value: nil, diagnostics: [])) }
    file.all = []
    outcomes += reload(nil) + preview(nil)
    world.ending.leave()
    outcomes += reload(configuration(), allowEmpty: true)
    world.ending.end()
    outcomes += reload(configuration(), allowEmpty: true)
    #expect(outcomes.map(\.isDone) == [false, false, false, false, false, false])
    #expect(outcomes[0].text.contains("nothing changed: the configuration has errors"))
    #expect(outcomes[1].text.contains("nothing would change: the configuration has errors"))
    #expect(outcomes[2].text.contains("took longer than 10 s"))
    #expect(outcomes[3].text == outcomes[2].text)
    #expect(outcomes[4...].allSatisfy { $0.text == "the daemon is ending" })
    #expect(world.workers[web] === worker && worker.isDeclared)
  }
}
