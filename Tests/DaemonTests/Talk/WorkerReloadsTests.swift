import Control
import Glibc
import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("`dormouse reload NAME`") struct WorkerReloadsTests {
  /// One worker, `web`, which is in any state that a test wants.
  private final class World: ReloadsHost {
    let timers = FakeTimers()
    var isClosing = false
    var wrapped: Set<String> = []
    var terms: ReloadTerms? = ReloadTerms(
      state: .background, signal: SIGHUP, announces: true, limit: .seconds(30))
    var delivery = ReloadDelivery.sent
    private(set) var delivered: [Int32] = []
    private(set) var events: [Event] = []
    private(set) var responses: [ControlResponse] = []
    private var wakes: [(Answer) -> Void] = []
    private(set) lazy var reloads = WorkerReloads(timers, self)
    let id = WorkerID("web")

    func isWrapped(_ name: String) -> Bool { wrapped.contains(name) }
    func reloadTerms(of id: WorkerID) -> ReloadTerms? { id.name == "web" ? terms : nil }
    func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) { wakes.append(answer) }
    func deliver(_ signal: Int32, to id: WorkerID) -> ReloadDelivery {
      delivered.append(signal)
      return delivery
    }
    func nameOfSignal(_ signal: Int32) -> String { "SIGHUP" }
    func send(_ event: Event) { events.append(event) }
    func lastWords(of id: WorkerID) -> String { "; last output: no such file" }
    func log(_ priority: DaemonLog.Priority, _ text: String) {}

    func ask(_ worker: String? = "web") {
      reloads.reloadWorker(ControlRequest(id: 7, verb: .reloadWorker, worker: worker)) {
        [unowned self] in responses.append($0)
      }
    }

    func wokenUp(_ code: Answer.Code) {
      let waiting = wakes
      wakes = []
      for answer in waiting { answer(Answer(code, "it was woken, or not")) }
    }

    var results: [ControlResponse.Result] { responses.map(\.result) }
  }

  private let world = World()

  @Test("A reload of a worker sends its signal to a running worker, and waits for the answer")
  func running() {
    world.ask()
    #expect(world.delivered == [SIGHUP] && world.results.isEmpty)
    world.reloads.isReloading(world.id)
    world.timers.advance(by: .seconds(10))
    world.reloads.isReady(world.id)
    #expect(world.results == [.done] && world.timers.pending.isEmpty)
  }

  @Test(
    "A reload of a sleeping worker wakes it, and sends nothing if it can't be woken",
    arguments: [true, false])
  func sleeping(isWoken: Bool) {
    world.terms?.state = .hibernated
    world.ask()
    #expect(world.delivered.isEmpty)
    world.wokenUp(isWoken ? .done : .failed)
    #expect(world.delivered.count == (isWoken ? 1 : 0))
    #expect(world.results == (isWoken ? [] : [.failed]))
  }

  @Test("Several reloads of a worker send one signal and answer all requests")
  func several() {
    world.ask()
    world.ask()
    world.timers.advance(by: WorkerReload.patience)
    #expect(world.delivered == [SIGHUP] && world.results == [.done, .done])
    world.ask()
    #expect(world.delivered == [SIGHUP, SIGHUP], "the earlier one is over")
  }

  @Test("A reload of a worker is answered with the cause if the worker ends during it")
  func ended() {
    world.ask()
    world.reloads.workerHasEnded(world.id, .exited(.exited(2)))
    #expect(world.results == [.failed])
    #expect(world.responses.first?.text.hasSuffix("last output: no such file") == true)
    world.reloads.workerHasEnded(world.id, .exited(.exited(2)))
    #expect(world.responses.count == 1 && world.timers.pending.isEmpty)
  }

  @Test(
    "A reload of a worker is refused or fails if the signal can't be delivered",
    arguments: [
      (ReloadDelivery.hasEnded, ControlResponse.Result.failed),
      (.isNotHandled(pid: 17), .refused), (.failed("not permitted"), .failed),
    ])
  func undelivered(delivery: ReloadDelivery, result: ControlResponse.Result) {
    world.delivery = delivery
    world.ask()
    #expect(world.results == [result] && world.events.isEmpty && world.timers.pending.isEmpty)
  }

  @Test("A reload of a worker is refused in states in which it can take no signal")
  func states() {
    for state in [WorkerState.terminated, .launching, .terminating] {
      world.terms?.state = state
      world.ask()
    }
    #expect(world.results == [.refused, .refused, .refused] && world.delivered.isEmpty)
    // An earlier daemon's worker, which the engine takes for terminated until it is back.
    world.terms?.state = .terminated
    world.terms?.isAdopting = true
    world.ask()
    world.wokenUp(.done)
    #expect(world.delivered == [SIGHUP])
  }

  @Test("A reload is refused without a name, a known worker or a signal, and while the daemon ends")
  func refused() {
    world.ask(nil)
    world.ask("other")
    world.wrapped = ["npm"]
    world.ask("npm")
    world.terms?.signal = nil
    world.ask()
    world.terms?.signal = SIGHUP
    world.isClosing = true
    world.ask()
    #expect(world.results == [.badRequest, .unknownWorker, .refused, .refused, .refused])
    #expect(world.delivered.isEmpty)
  }
}
