import Glibc
import Lifecycle
import Linux
import Policy
import Testing

@testable import Daemon

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

  @Test("A scan finds the tree of a worker without a cgroup, and a failed scan finds none")
  func tree() throws {
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

  @Test("A scan shows a process for a while, and none that began later or has another start time")
  func seen() throws {
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

  @Test("A report uses the last scan if it began after all its workers were launched")
  func reused() throws {
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

  @Test("A scan that began less than a second after a launch is repeated for the next report")
  func young() throws {
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
