import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import Synchronization
import TestSupport
import Testing

@testable import Daemon

@Suite("A configuration that is read again, as the daemon applies it") struct ReloadOfDaemonTests {
  private let world: AdapterWorld
  private let file = File()
  private let host: ReloadOfDaemon

  /// What a reload reads.
  private final class File: Sendable {
    let content = Mutex(DaemonConfiguration(policy: LifecyclePolicy(name: "test")))
    func set(_ change: @Sendable (inout DaemonConfiguration) -> Void) {
      content.withLock { change(&$0) }
    }
  }

  init() throws {
    world = try AdapterWorld()
    host = world.makeReload { [file] in
      ParseResult(value: file.content.withLock { $0 }, diagnostics: [])
    }
  }

  private func reload(allowEmpty: Bool = false) throws -> ReloadOutcome {
    let reloader = host.makeReloader()
    var outcomes: [ReloadOutcome] = []
    reloader.reload(allowEmpty: allowEmpty) { outcomes.append($0) }
    #expect(outcomes.isEmpty, "the file may be in a file system that doesn't answer")
    try world.turn { !outcomes.isEmpty }
    #expect(outcomes.count == 1)
    return outcomes[0]
  }

  @Test(
    "A worker that the configuration adds is known, started, and has the daemon's variables below its own"
  )
  func added() throws {
    file.set {
      $0.workers = [
        .forTest("web") {
          $0.environment = ["PORT": "80"]
          $0.autostart = true
        }
      ]
    }
    #expect(try reload().isDone)
    let runtime = try #require(world.workers[WorkerID("web")])
    #expect(world.driver.state.state(of: runtime.id) == .launching)
    #expect(world.asked == ["start web"])
    #expect(runtime.environment == ["HOME": "/root", "PORT": "80"])
  }

  @Test("A worker that the configuration drops is removed, and one that runs is stopped first")
  func dropped() throws {
    try world.add("db", .terminated)
    let web = try world.add("web")
    file.set { $0.workers = [.forTest("api") { $0.autostart = false }] }
    #expect(try reload().isDone)
    #expect(world.workers[WorkerID("db")] == nil && world.workers[web.id] === web)
    #expect(world.driver.state.state(of: web.id) == .terminating && !web.isDeclared)
    #expect(world.asked == ["stop web"])
  }

  @Test(
    "A changed worker that runs has its new configuration at once, and its policy in the engine")
  func changed() throws {
    let web = try world.add("web")
    web.traffic = try TrafficMonitor(latches: nil, ownChannels: [])
    file.set {
      $0.workers = [
        .forTest("web") {
          $0.importance = 70
          $0.policy.foreground.idleAfter = .seconds(77)
        }
      ]
    }
    #expect(try reload().isDone)
    #expect(web.configuration.importance == 70 && web.isDeclared)
    #expect(world.notes.events.contains("profileChanged"), "\(world.notes.events)")
    #expect(web.traffic == nil, "it is looked at as it is configured now")
  }

  @Test("A worker of an earlier daemon that is being adopted is changed when it is back")
  func adopting() throws {
    let id = WorkerID("web")
    world.returning.begin(id)
    var bodies = 0
    #expect(host.whenAdopted(id) { bodies += 1 })
    #expect(bodies == 0)
    world.returning.isOver(id)
    #expect(bodies == 1)
    #expect(!host.whenAdopted(id) { bodies += 1 } && bodies == 1)
  }

  @Test("A reload while the daemon ends or leaves is known to the reloader")
  func phases() throws {
    #expect(!host.isEnding && !host.isLeaving)
    world.ending.leave()
    #expect(host.isLeaving)
  }

  @Test("A configuration without workers is refused, unless the operator permits that")
  func empty() throws {
    try world.add("web", .terminated)
    #expect(try !reload().isDone)
    #expect(world.workers.count == 1)
    #expect(try reload(allowEmpty: true).isDone)
    #expect(world.workers.count == 0)
  }
}
