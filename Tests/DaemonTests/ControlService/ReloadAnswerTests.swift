import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("A worker that reads its configuration again") struct ReloadAnswerTests {
  private final class World: WorkerReloadHost {
    let id = WorkerID("web")
    let timers = FakeTimers()
    let limit = Duration.seconds(30)
    private(set) var events: [Event] = []
    private(set) var ended = 0
    private(set) var answers: [Answer] = []

    func begin(announces: Bool) -> WorkerReload {
      let reload = WorkerReload(id, timers: timers, host: self)
      reload.whenDone { [unowned self] in answers.append($0) }
      reload.begin(by: "SIGHUP", announces: announces)
      return reload
    }

    func send(_ event: Event) { events.append(event) }
    func reloadHasEnded() {
      #expect(answers == [])
      ended += 1
    }

    var isOver: Bool {
      ended == 1 && timers.pending == []
        && events == [
          .taskBegan(id, task: "reload", limit: limit), .taskEnded(id, task: "reload"),
        ]
    }
  }

  @Test("A worker that reports nothing counts as reloaded after 200 ms", arguments: [false, true])
  func silent(announces: Bool) {
    let world = World()
    let reload = world.begin(announces: announces)
    defer { withExtendedLifetime(reload) {} }
    world.timers.advance(by: .milliseconds(announces ? 999 : 199))
    #expect(world.answers == [] && world.events.count == 1)
    // Without `RELOADING=1` it says nothing of a reload.
    reload.isReady()
    #expect(world.answers == [])
    world.timers.advance(by: .milliseconds(1))
    #expect(world.answers.map(\.code) == [.done])
    #expect(world.answers.first?.text.hasSuffix("was sent SIGHUP to reload") == true)
    #expect(world.isOver)
  }

  @Test("A worker that has sent RELOADING=1 counts as reloaded with its READY=1")
  func announced() {
    let world = World()
    let reload = world.begin(announces: true)
    reload.isReloading()
    world.timers.advance(by: .seconds(10))
    reload.isReloading()
    world.timers.advance(by: .seconds(19))
    #expect(world.answers == [])
    reload.isReady()
    #expect(world.answers == [Answer(.done, "web has reloaded and is ready")])
    reload.isReady()
    reload.workerHasEnded("exit code 1")
    world.timers.advance(by: .seconds(60))
    #expect(world.answers.count == 1 && world.isOver)
  }

  @Test("A reload fails if READY=1 doesn't follow RELOADING=1 within watchdog.launch")
  func overdue() {
    let world = World()
    let reload = world.begin(announces: false)
    reload.isReloading()
    world.timers.advance(by: .seconds(30))
    #expect(world.answers.map(\.code) == [.failed] && world.isOver)
    #expect(world.answers.first?.text.contains("was not ready again within") == true)
    withExtendedLifetime(reload) {}
  }

  @Test("A reload fails if the worker ends meanwhile, and each waiting client is answered")
  func ended() {
    let world = World()
    let reload = world.begin(announces: true)
    var second: [Answer] = []
    reload.whenDone { second.append($0) }
    reload.workerHasEnded("exit code 1")
    #expect(world.answers == [Answer(.failed, "web ended while it reloaded: exit code 1")])
    #expect(second == world.answers && world.isOver)
  }
}
