import Control
import Glibc
import Lifecycle
import Testing

@testable import Daemon

/// The test's own process is the worker. It handles SIGWINCH and does nothing then.
@Suite("`dormouse reload NAME`") struct WorkerReloadsTests {
  private let world: AdapterWorld
  private let heard = ControlWorld.Heard()
  private let id = WorkerID("web")
  private var reloads: WorkerReloads { world.reloads }

  init() throws {
    world = try AdapterWorld()
    signal(SIGWINCH) { _ in }
  }

  @discardableResult
  private func add(
    _ state: WorkerState = .background, announces: Bool = true, signal: Int32? = SIGWINCH
  ) throws -> WorkerUnit {
    try world.add("web", state) {
      $0.reloadSignal = signal
      $0.readiness = announces ? .notify : nil
      $0.policy.watchdog.launch = .seconds(30)
    }
  }

  private func ask(_ worker: String? = "web") {
    reloads.reloadWorker(
      ControlCall(request: ControlRequest(id: 7, verb: .reloadWorker, worker: worker)) {
        [heard] in heard.responses.append($0)
      })
  }

  private var results: [ControlResponse.Result] { heard.responses.map(\.result) }
  private var text: String? { heard.responses.last?.text }
  private var sent: Int {
    world.logged.split(separator: "\n").count { $0.hasSuffix("web: sent SIGWINCH to reload") }
  }

  /// Whether the task that keeps the worker awake has begun and ended.
  private var isOver: Bool {
    world.timers.pending == []
      && world.notes.all.suffix(2) == [
        .taskBegan(id, task: "reload", limit: .seconds(30)), .taskEnded(id, task: "reload"),
      ]
  }

  @Test(arguments: [false, true])
  func `A worker that reports nothing has reloaded after 200 ms or 1 s`(announces: Bool) throws {
    try add(announces: announces)
    ask()
    world.timers.advance(by: .milliseconds(announces ? 999 : 199))
    // Without `RELOADING=1` the message isn't about a reload.
    reloads.didBecomeReady(id)
    #expect(results == [] && world.notes.all.count == 1 && sent == 1)
    world.timers.advance(by: .milliseconds(1))
    #expect(results == [.done] && text == "web was sent SIGWINCH to reload" && isOver)
  }

  @Test func `A worker that has sent RELOADING=1 counts as reloaded with its READY=1`() throws {
    try add()
    ask()
    reloads.didAnnounceReload(id)
    world.timers.advance(by: .seconds(10))
    reloads.didAnnounceReload(id)
    world.timers.advance(by: .seconds(19))
    #expect(results == [])
    reloads.didBecomeReady(id)
    #expect(results == [.done] && text == "web has reloaded and is ready" && isOver)
    reloads.didBecomeReady(id)
    reloads.didEnd(id, .exited(.exited(1)))
    world.timers.advance(by: .seconds(60))
    #expect(results.count == 1)
  }

  @Test func `A reload fails if READY=1 doesn't follow RELOADING=1 in watchdog.launch`() throws {
    try add(announces: false)
    ask()
    reloads.didAnnounceReload(id)
    world.timers.advance(by: .seconds(30))
    #expect(results == [.failed] && isOver)
    #expect(text?.contains("was not ready again within 30 s, its watchdog.launch") == true)
  }

  @Test func `A sleeping worker is woken first, and is sent nothing if it can't be woken`() throws {
    try add(.hibernated)
    ask()
    #expect(world.asked == ["wake web"] && sent == 0)
    world.driver.send(.resumeFailed(id, "its image can't be read", intact: true))
    #expect(results == [.failed] && sent == 0)
    ask()
    world.driver.send(.resumed(id, .milliseconds(20)))
    #expect(results.count == 1 && sent == 1)
  }

  @Test func `Several reloads of a worker send one signal and answer all requests`() throws {
    try add()
    ask()
    ask()
    world.timers.advance(by: WorkerReloads.announcementTimeout)
    #expect(sent == 1 && results == [.done, .done])
    ask()
    #expect(sent == 2, "the earlier one is over")
  }

  @Test func `A reload is answered with the cause if the worker ends during it`() throws {
    try add()
    ask()
    ask()
    reloads.didEnd(id, .exited(.exited(2)))
    #expect(results == [.failed, .failed] && isOver)
    #expect(text?.hasPrefix("web ended while it reloaded: ") == true)
    #expect(text?.contains("exited with status 2") == true)
    reloads.didEnd(id, .exited(.exited(2)))
    #expect(results.count == 2)
  }

  @Test func `A signal that would end the process, or that it ignores, isn't sent`() throws {
    try add(signal: SIGUSR2)
    let before = signal(SIGUSR2, SIG_DFL)
    defer { signal(SIGUSR2, before) }
    ask()
    #expect(results == [.refused] && world.notes.all == [] && world.timers.pending.isEmpty)
    #expect(text?.contains("does not handle SIGUSR2 in its first process, pid \(getpid())") == true)
  }

  @Test func `A reload fails if the worker has just ended`() throws {
    let worker = try add()
    worker.process = nil
    ask()
    worker.process = try .forTest()
    let end = try WorkerEndWorld()
    worker.ending = end.ending
    end.ending.rootDidEnd()
    ask()
    #expect(results == [.failed, .failed] && text == "web has just ended" && sent == 0)
  }

  @Test func `A reload is refused while the worker starts, ends or doesn't run`() throws {
    for state in [WorkerState.terminated, .launching, .terminating] {
      try add(state)
      ask()
      world.driver.send(.exited(id, .unknown))
      world.driver.send(.removed(id))
    }
    #expect(results == [.refused, .refused, .refused] && sent == 0)
    // An earlier daemon's worker counts as terminated for the engine until it is adopted.
    let worker = try add(.terminated)
    world.returning.begin(id)
    ask()
    worker.process = try .forTest()
    world.driver.send(.adopted(id, worker.profile, .background))
    world.returning.finish(id)
    #expect(results.count == 3 && sent == 1)
  }

  @Test func `A reload is refused without a name, a signal or a daemon that stays`() throws {
    ask(nil)
    ask("other")
    world.wrap("npm")
    ask("npm")
    let worker = try add(signal: nil)
    ask()
    worker.configuration.reloadSignal = SIGWINCH
    world.phase.isLeaving = true
    ask()
    #expect(results == [.badRequest, .unknownWorker, .refused, .refused, .refused] && sent == 0)
  }
}
