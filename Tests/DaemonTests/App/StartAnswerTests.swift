import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("The answer to a start") struct StartAnswerTests {
  /// A worker whose processes do what a test says.
  private final class World: FirstMomentsHost {
    final class Instance {}
    let restarts: RestartWorld
    let id = WorkerID("web")
    var worker: Instance? = Instance()
    var saysWhenReady = false
    var hasProcess = true
    var hasExited = false
    var found: RestLook?
    /// Looks wait for `answerLook`.
    var isSlow = false
    private var waiting: [(RestLook?) -> Void] = []
    private(set) var looks = 0
    private(set) var answers: [Answer] = []
    private(set) lazy var moments = FirstMoments(
      timers: restarts.timers, restarts: restarts.supervisor, host: self)

    init() throws {
      restarts = try RestartWorld()
      restarts.add()
    }

    /// It has been launched, and the engine has answered.
    func start(_ code: Answer.Code = .done) {
      restarts.launch()
      ask(code)
    }
    func ask(_ code: Answer.Code = .done) {
      moments.watch(id, Answer(code, "web is running")) { [self] in answers.append($0) }
    }
    func pass(_ milliseconds: Int) {
      restarts.timers.advance(by: .milliseconds(milliseconds))
    }
    func answerLook(times: Int = 1) {
      let all = waiting
      waiting = []
      for then in all { for _ in 0..<times { then(found) } }
    }
    var codes: [Answer.Code] { answers.map(\.code) }

    func saysWhenReady(_ id: WorkerID) -> Bool { saysWhenReady }
    func isAlive(_ id: WorkerID) -> Bool { restarts.state(of: "web")?.isAlive == true }
    func instance(of id: WorkerID) -> AnyObject? { worker }
    func hasExited(_ id: WorkerID) -> Bool { hasExited }
    func runs(_ id: WorkerID) -> Bool { restarts.state(of: "web")?.runs == true }
    func look(at id: WorkerID, then: @escaping (RestLook?) -> Void) -> Bool {
      guard hasProcess else { return false }
      looks += 1
      if isSlow { waiting.append(then) } else { then(found) }
      return true
    }
  }

  private let world: World

  init() throws { world = try World() }

  @Test("A start is answered as soon as the worker rests, and not within 100 ms")
  func rests() {
    world.found = RestLook(timeUsed: 3, rests: true)
    world.start()
    world.pass(99)
    #expect(world.answers.isEmpty)
    world.pass(25)
    #expect(world.codes == [.done])
  }

  @Test("A start is answered after a second if the worker continues to work")
  func works() {
    world.found = RestLook(timeUsed: 30, rests: false)
    world.start()
    world.pass(990)
    #expect(world.answers.isEmpty)
    world.pass(50)
    #expect(world.codes == [.done])
  }

  @Test("A start is answered after five seconds if the worker has hardly got a processor")
  func starved() {
    world.found = RestLook(timeUsed: 1, rests: false)
    world.start()
    world.pass(4900)
    #expect(world.answers.isEmpty)
    world.pass(150)
    #expect(world.codes == [.done])
  }

  @Test("A start isn't answered while a worker that rested at one look has worked until the next")
  func restsNow() {
    world.found = RestLook(timeUsed: 20, rests: true)
    world.start()
    for used in 1...20 {
      world.found = RestLook(timeUsed: 20 + UInt64(used), rests: true)
      world.pass(25)
    }
    #expect(world.answers.isEmpty)
    world.pass(25)
    #expect(world.codes == [.done], "it rests")
  }

  @Test("The answer to a start says how the worker ended in its first moments")
  func ends() {
    world.found = RestLook(timeUsed: 3, rests: false)
    world.start()
    world.pass(60)
    world.hasExited = true
    world.pass(5000)
    #expect(world.answers.isEmpty, "its end is about to be reported")
    world.restarts.end()
    #expect(world.codes == [.failed])
    #expect(world.answers.first?.text.contains("after its launch") == true)
    world.pass(5000)
    #expect(world.answers.count == 1)
  }

  @Test("A start is answered at once if the worker has reported readiness, or the start has failed")
  func atOnce() {
    world.saysWhenReady = true
    world.start()
    world.saysWhenReady = false
    world.ask(.failed)
    world.ask(.refused)
    #expect(world.codes == [.done, .failed, .refused] && world.looks == 0)
  }

  @Test("A start is answered at once if the worker has run for a while")
  func longAgo() {
    world.restarts.launch("web", for: .seconds(5))
    world.ask()
    #expect(world.codes == [.done] && world.looks == 0)
  }

  @Test("A start is answered at once if there is no worker, or it has no process")
  func nothingThere() {
    world.hasProcess = false
    world.start()
    world.worker = nil
    world.ask()
    #expect(world.codes == [.done, .done])
  }

  @Test("One look at the worker answers all clients that wait for its start")
  func several() {
    world.found = RestLook(timeUsed: 30, rests: false)
    world.start()
    world.ask()
    #expect(world.looks == 1)
    world.pass(1100)
    #expect(world.codes == [.done, .done])
  }

  @Test("A look at a worker that has been replaced since doesn't answer the start")
  func replaced() {
    world.isSlow = true
    world.found = RestLook(timeUsed: 30, rests: false)
    world.start()
    world.pass(2000)
    world.worker = World.Instance()
    world.answerLook()
    #expect(world.answers.isEmpty && world.looks == 1)
  }

  @Test("A start is answered if a look has no outcome, and a late outcome changes nothing")
  func lost() {
    world.isSlow = true
    world.start()
    world.pass(9_900)
    #expect(world.answers.isEmpty && world.looks == 1)
    world.pass(200)
    #expect(world.codes == [.done])
    world.answerLook()
    world.pass(5000)
    #expect(world.codes == [.done] && world.looks == 1)
  }

  @Test("One look at a time examines a started worker, also if an outcome comes twice")
  func twice() {
    world.isSlow = true
    world.found = RestLook(timeUsed: 1, rests: false)
    world.start()
    world.answerLook(times: 2)
    world.pass(30)
    #expect(world.looks == 2)
  }

  @Test("A start is answered if the worker's processes can't be read")
  func unreadable() {
    world.found = nil
    world.start()
    world.pass(1100)
    #expect(world.codes == [.done])
  }
}
