import Glibc
import Lifecycle
import Linux
import Testing

@testable import Daemon

@Suite("The answer to a start") struct StartConfirmationTests {
  /// A worker whose processes are in the state that a test sets.
  private final class World {
    let restarts: RestartWorld
    let id = WorkerID("web")
    let end: WorkerEndWorld
    /// The processor time in a scan, and whether the worker is idle; nil: its processes can't be
    /// read.
    var scanned: (ticks: UInt64, rests: Bool)?
    /// Whether scans wait for `answerScan`.
    var isSlow = false
    private let testStat: ProcessStat
    private var waiting: [(ProcessScan?) -> Void] = []
    private(set) var scans = 0
    private(set) var answers: [Answer] = []
    private(set) lazy var confirmation = StartConfirmation(
      requests: restarts.base.requests, restarts: restarts.supervisor,
      scanner: ProcessScanner(restarts.timers, launchedAt: restarts.supervisor.launchedAt) {
        [unowned self] in
        scans += 1
        if isSlow { waiting.append($0) } else { $0(scan) }
      })

    init() throws {
      end = try WorkerEndWorld()
      restarts = try RestartWorld()
      restarts.add()
      testStat = try ProcessStat.read(getpid())
      worker?.process = try .forTest()
    }

    var worker: WorkerUnit? {
      get { restarts.workers[id] }
      set { restarts.workers[id] = newValue }
    }

    private var scan: ProcessScan? {
      scanned.map { ticks, rests in
        var stat = testStat
        (stat.cpuTicks, stat.state) = (ticks, rests ? .sleeping : .running)
        return ProcessScan(processes: [stat])
      }
    }

    /// Reports that the worker's root process has ended. Its remaining processes are being cleared.
    func exit() {
      worker?.ending = end.ending
      end.ending.rootDidEnd()
    }

    /// Launches the worker, and gives the engine's answer.
    func start(_ code: Answer.Code = .done) {
      restarts.launch()
      ask(code)
    }
    func ask(_ code: Answer.Code = .done) {
      confirmation.watch(id, Answer(code, "web is running")) { [self] in answers.append($0) }
    }
    func pass(_ milliseconds: Int) {
      restarts.timers.advance(by: .milliseconds(milliseconds))
    }
    func answerScan(times: Int = 1) {
      let all = waiting
      waiting = []
      for then in all { for _ in 0..<times { then(scan) } }
    }
    var codes: [Answer.Code] { answers.map(\.code) }
  }

  private let world: World

  init() throws { world = try World() }

  @Test(
    "A start is answered when the worker is idle, after 1 s of work, or 5 s without a processor",
    arguments: [(3, true, 99, 25), (30, false, 990, 50), (1, false, 4900, 150)]
      as [(UInt64, Bool, Int, Int)])
  func answered(ticks: UInt64, rests: Bool, early: Int, later: Int) {
    world.scanned = (ticks, rests)
    world.start()
    world.pass(early)
    #expect(world.answers.isEmpty)
    world.pass(later)
    #expect(world.codes == [.done])
  }

  @Test func `A start isn't answered if the worker has worked between two idle scans`() {
    world.scanned = (20, true)
    world.start()
    for used in 1...20 {
      world.scanned = (20 + UInt64(used), true)
      world.pass(25)
    }
    #expect(world.answers.isEmpty)
    world.pass(25)
    #expect(world.codes == [.done], "it rests")
  }

  @Test func `The answer to a start says how the worker ended soon after its launch`() {
    world.scanned = (3, false)
    world.start()
    world.pass(60)
    world.exit()
    world.pass(5000)
    #expect(world.answers.isEmpty, "its end is about to be reported")
    world.restarts.end()
    #expect(world.codes == [.failed])
    #expect(world.answers.first?.text.contains("after its launch") == true)
    world.pass(5000)
    #expect(world.answers.count == 1)
  }

  @Test func `A start is answered at once if the worker is ready, or the start has failed`() {
    world.worker?.configuration.readiness = .notify
    world.start()
    world.worker?.configuration.readiness = nil
    world.ask(.failed)
    world.ask(.refused)
    #expect(world.codes == [.done, .failed, .refused] && world.scans == 0)
  }

  @Test func `A start is answered at once if the worker has run for a while`() {
    world.restarts.launch("web", for: .seconds(5))
    world.ask()
    #expect(world.codes == [.done] && world.scans == 0)
  }

  @Test func `A start is answered at once if there is no worker, or it has no process`() {
    world.worker?.process = nil
    world.start()
    world.worker = nil
    world.ask()
    #expect(world.codes == [.done, .done])
  }

  @Test func `One scan of the worker answers all clients that wait for its start`() {
    world.scanned = (30, false)
    world.start()
    world.ask()
    #expect(world.scans == 1)
    world.pass(1100)
    #expect(world.codes == [.done, .done])
  }

  @Test func `A scan of a worker that has been replaced since doesn't answer the start`() {
    world.isSlow = true
    world.scanned = (30, false)
    world.start()
    world.pass(2000)
    world.worker = .forTest("web")
    world.answerScan()
    #expect(world.answers.isEmpty && world.scans == 1)
  }

  @Test func `A start is answered if a scan has no outcome, and a late outcome changes nothing`() {
    world.isSlow = true
    world.start()
    world.pass(9_900)
    #expect(world.answers.isEmpty && world.scans == 1)
    world.pass(200)
    #expect(world.codes == [.done])
    world.answerScan()
    world.pass(5000)
    #expect(world.codes == [.done] && world.scans == 1)
  }

  @Test func `Only one scan of a started worker runs at a time, even if an outcome comes twice`() {
    world.isSlow = true
    world.scanned = (1, false)
    world.start()
    world.answerScan(times: 2)
    world.pass(30)
    #expect(world.scans == 2)
  }

  @Test func `A start is answered if the worker's processes can't be read`() {
    world.scanned = nil
    world.start()
    world.pass(1100)
    #expect(world.codes == [.done])
  }
}
