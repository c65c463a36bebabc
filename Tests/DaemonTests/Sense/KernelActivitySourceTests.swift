import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
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
    jobs = try LoopJobs(
      loop, JobPool(name: "test-activity", maxOrdinary: 256, endsAfter: .seconds(5)))
    scanner = ProcessScanner(
      world.timers, launchedAt: { _ in .zero }, scan: { [scans] in scans.add($0) })
    source = KernelActivitySource(
      loop: loop, jobs: jobs, driver: world.driver, scanner: scanner, metersWork: false)
  }

  @Test(
    "Two source find a worker's processor time and memory, and traffic only where it counts")
  func readings() throws {
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
    // The first sample only prepares.
    #expect(readings.first??.hasTraffic == false && worker.traffic != nil)
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
