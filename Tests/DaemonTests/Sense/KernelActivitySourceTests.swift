import Glibc
import Lifecycle
import Linux
import Policy
import Testing

@testable import Daemon

@Suite("Looks at activity") struct KernelActivitySourceTests {
  private let world = SenseWorld()
  private let loop: EventLoop
  private let jobs: LoopJobs
  private let scans = Pending<ProcessScan?>()
  private let source: KernelActivitySource
  private let scanner: ProcessScanner

  init() throws {
    loop = try EventLoop(check: nil)
    jobs = try LoopJobs(loop, .forTest)
    scanner = ProcessScanner(
      world.timers, launchedAt: { _ in .zero }, scan: { [scans] in scans.add($0) })
    source = KernelActivitySource(
      loop: loop, jobs: jobs, driver: world.driver, scanner: scanner, metersWork: false)
  }

  @Test func `A sample finds processor time and memory, and traffic where it counts`() throws {
    let worker = try world.add()
    let process = try #require(worker.process)
    var readings: [ActivityReading?] = []
    for _ in 0..<2 { source.sample(worker, process) { readings.append($0) } }
    #expect(readings.isEmpty && scans.count == 2)
    let scan = try ProcessScan.read()
    while scans.answer(scan) {}
    try loop.turn { readings.count == 2 }
    for each in readings {
      let each = try #require(each)
      #expect(each.root == process.identity && each.anonymous > 0 && each.hasTraffic == nil)
    }
    #expect(worker.traffic == nil)
  }

  @Test func `In activity mode traffic is read from the first sample on`() throws {
    let worker = try world.add("web", .background) {
      $0.policy.foreground = ForegroundRules(mode: .activity)
    }
    let process = try #require(worker.process)
    var readings: [ActivityReading?] = []
    source.sample(worker, process) { readings.append($0) }
    scans.answer(try ProcessScan.read())
    try loop.turn { !readings.isEmpty }
    // The process is this one, and other tests in it may have traffic.
    #expect(readings.first??.hasTraffic != nil && worker.traffic != nil)
  }

  @Test func `A worker that ends during a sample, or isn't found, isn't examined`() throws {
    let worker = try world.add()
    let process = try #require(worker.process)
    var readings: [ActivityReading?] = []
    source.sample(worker, process) { readings.append($0) }
    world.end(worker)
    scans.answer(try ProcessScan.read())
    #expect(readings.count == 1 && readings[0]?.root == nil)
    try world.begin(worker)
    source.sample(worker, try #require(worker.process)) { readings.append($0) }
    scans.answer(nil)
    // The last scan of all processes is used instead.
    try loop.turn { readings.count == 2 }
    #expect(readings.last??.root == worker.process?.identity)
  }
}

@Suite("The process scanner") struct ProcessScannerTests {
  private let world = SenseWorld()
  private let looks = Pending<ProcessScan?>()
  private let launches = Launches()
  private let scanner: ProcessScanner

  private final class Launches { var times: [String: Instant] = [:] }

  init() {
    scanner = ProcessScanner(
      world.timers, launchedAt: { [launches] in launches.times[$0.name] ?? .zero },
      scan: { [looks] in looks.add($0) })
  }

  /// For each report, whether it had a scan.
  private func recent(_ runtimes: WorkerUnit...) -> [Bool] {
    var scans: [Bool] = []
    scanner.withRecentScan(of: runtimes) { scans.append($0 != nil) }
    return scans
  }

  @Test func `A scan finds the tree of a worker without a cgroup`() throws {
    let worker = try world.add()
    let process = try #require(worker.process)
    var trees: [ProcessTree?] = []
    scanner.withTree(of: process) { trees.append($0) }
    #expect(trees.isEmpty)
    looks.answer(try ProcessScan.read())
    #expect(trees.first??.contains(getpid()) == true)
    scanner.withTree(of: process) { trees.append($0) }
    looks.answer(nil)
    #expect(trees.count == 2 && trees[1] == nil)
  }

  @Test func `A scan shows a process for a while, and no later one`() throws {
    let process = try ProcessIdentity.current(of: getpid())
    #expect(!scanner.hasSeen(process, within: .seconds(5)))
    scanner.scanProcesses { _ in }
    looks.answer(try ProcessScan.read())
    #expect(scanner.hasSeen(process, within: .seconds(5)))
    let other = ProcessIdentity(pid: process.pid, startTime: process.startTime + 1)
    #expect(!scanner.hasSeen(other, within: .seconds(5)))
    world.timers.advance(by: .seconds(5))
    #expect(!scanner.hasSeen(process, within: .seconds(5)))
  }

  @Test func `A report without workers that need a scan gets none`() throws {
    #expect(recent() == [false])
    #expect(recent(try world.add("ended", .terminated)) == [false])
    #expect(looks.count == 0)
  }

  @Test func `A report uses the last scan if it began after its workers were launched`() throws {
    let worker = try world.add()
    launches.times["web"] = world.timers.now
    world.timers.advance(by: .seconds(5))
    var scans = 0
    scanner.withRecentScan(of: [worker]) { _ in scans += 1 }
    #expect(scans == 0 && looks.count == 1)
    looks.answer(try ProcessScan.read())
    #expect(scans == 1)
    world.timers.advance(by: .seconds(3600))
    #expect(recent(worker) == [true] && looks.count == 1)
  }

  @Test func `A scan within a second after a launch is repeated for the next report`() throws {
    let worker = try world.add()
    launches.times["web"] = world.timers.now
    world.timers.advance(by: .milliseconds(900))
    scanner.scanProcesses { _ in }
    world.timers.advance(by: .seconds(10))
    looks.answer(try ProcessScan.read())
    // The time of the request counts, and not that of the answer.
    #expect(recent(worker) == [] && looks.count == 2)
  }

  @Test func `A scan that finds nothing doesn't replace the last one`() throws {
    let worker = try world.add()
    world.timers.advance(by: .seconds(5))
    scanner.scanProcesses { _ in }
    looks.answer(try ProcessScan.read())
    var scans: [Bool] = []
    scanner.scanProcesses { scans.append($0 != nil) }
    looks.answer(nil)
    #expect(scans == [false])
    #expect(scanner.lastScan != nil && recent(worker) == [true])
  }

  @Test func `Each of two concurrent scans answers its caller`() throws {
    var answered: [String] = []
    scanner.scanProcesses { answered.append("first \($0 != nil)") }
    scanner.scanProcesses { answered.append("second \($0 != nil)") }
    looks.answer(try ProcessScan.read(), at: 1)
    looks.answer(nil)
    #expect(answered == ["second true", "first false"])
  }
}

@Suite("The check for a safe point") struct SafePointCheckTests {
  private let world = SenseWorld()
  private let counts = Pending<Int>()
  private let check: SafePointCheck

  init() {
    check = SafePointCheck(driver: world.driver, workers: world.workers) { [counts] _, _, then in
      counts.add(then)
    }
  }

  @Test func `The engine gets the number of file locks from each of two checks`() throws {
    let (web, api) = (try world.add("web"), try world.add("api"))
    check.checkSafePoint(web.id)
    check.checkSafePoint(api.id)
    #expect(world.drainEvents().isEmpty)
    counts.answer(2, at: 1)
    counts.answer(0)
    #expect(world.drainEvents() == [.fileLocks(api.id, held: 2), .fileLocks(web.id, held: 0)])
  }

  @Test func `A worker without a process has no file locks, and the answer comes at once`() throws {
    let worker = try world.add("web", .terminated)
    check.checkSafePoint(worker.id)
    check.checkSafePoint(WorkerID("unknown"))
    #expect(
      world.drainEvents() == [
        .fileLocks(worker.id, held: 0), .fileLocks(WorkerID("unknown"), held: 0),
      ])
    #expect(counts.count == 0)
  }

  @Test func `The outcome of a check is dropped if the run has ended meanwhile`() throws {
    let worker = try world.add()
    check.checkSafePoint(worker.id)
    check.checkSafePoint(worker.id)
    world.end(worker)
    counts.answer(1)
    try world.begin(worker)
    counts.answer(1)
    #expect(world.drainEvents().isEmpty)
  }
}
