import Glibc
import Lifecycle
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon
@testable import Hibernation

@Suite("The keeper of what a later daemon needs") struct KeeperStarterTests {
  private let scratch: Scratch
  private let processes = FakeProcesses { $0.forbidsStrangers = true }
  private let hibernation = HibernationService(lanes: 1, separatesWorkers: true)
  private let log: DaemonLog

  init() throws {
    scratch = try Scratch()
    log = DaemonLog(ofWrapper: scratch.path + "/log")
  }

  private var socket: String { scratch.path + "/keeper.sock" }

  /// Makes a starter. Each keeper records its pid. It lives as long as this process, which has the
  /// other end of its input.
  private func starter(
    hasSuccessors: Bool = true, program: String = "/bin/sh"
  ) -> KeeperStarter {
    KeeperStarter(
      path: socket,
      command: [program, "-c", "echo $$ >>\(scratch.path)/pids; exec cat >/dev/null"],
      processes: processes, hibernation: hibernation, log: log, hasSuccessors: hasSuccessors,
      timeout: .seconds(60))
  }

  /// The pids of the keepers that were started.
  private var pids: [Int32] {
    // Without the file none was started yet.
    ((try? readText(scratch.path + "/pids")) ?? "").split(separator: "\n").compactMap { Int32($0) }
  }

  private var logged: String {
    log.drain(within: .seconds(60))
    // Without the file nothing was logged.
    return (try? readText(scratch.path + "/log")) ?? ""
  }

  private func started(_ count: Int) throws -> Bool { try eventually { pids.count == count } }

  @Test("The keeper is started once before the first hibernation, and again when it was killed")
  func once() throws {
    let before = starter().startKeeperWhereMissing()
    before()
    #expect(try started(1))
    before()
    sendSignal(SIGKILL, to: try #require(pids.first))
    // The next keeper is started as soon as the first one has ended.
    #expect(
      try eventually {
        before()
        return pids.count == 2
      })
    before()
    #expect(pids.count == 2)
  }

  @Test("No keeper is started if a later daemon can open the memory itself, or there will be none")
  func needless() {
    starter(hasSuccessors: false).startKeeperWhereMissing()()
    processes.set { $0.forbidsStrangers = false }
    starter().startKeeperWhereMissing()()
    let keeper = starter(program: "/no/such/program")
    keeper.collectKeptMemories()
    keeper.takeOverKeeping(of: WorkerRegistry())
    #expect(pids.isEmpty && !hibernation.kept.isNeeded)
  }

  @Test("A keeper that can't be started is logged, and the next hibernation tries again")
  func refused() throws {
    let program = scratch.path + "/program"
    let before = starter(program: program).startKeeperWhereMissing()
    before()
    #expect(
      logged.contains(
        "no worker is hibernated: can't start the keeper that hands memory to the next daemon: "))
    #expect(symlink("/bin/sh", program) == 0)
    before()
    #expect(try started(1))
  }

  @Test(
    "Descriptors that an earlier daemon opened are given to its workers and to no other process")
  func givenBack() throws {
    let earlier = try EarlierKeeper(at: socket)
    let keeper = starter()
    #expect(!keeper.hasKeptMemories && keeper.keptMemories(of: [earlier.process]).isEmpty)
    keeper.collectKeptMemories()
    #expect(keeper.hasKeptMemories && hibernation.kept.isNeeded)
    let process = earlier.process
    let other = ProcessIdentity(pid: process.pid, startTime: process.startTime + 1)
    #expect(keeper.keptMemories(of: [other]).isEmpty)
    #expect(Array(keeper.keptMemories(of: [other, process]).keys) == [process])
  }

  @Test("A new keeper takes the descriptors of adopted workers over before the earlier one ends")
  func takenOver() throws {
    let earlier = try EarlierKeeper(at: socket)
    let workers = WorkerRegistry()
    for name in ["web", "other"] { workers[WorkerID(name)] = .forTest(name) }
    let held = try WorkerProcess.forTest(earlier.process)
    held.store(earlier.memory, of: earlier.process)
    workers[WorkerID("web")]?.process = held
    let keeper = starter()
    keeper.collectKeptMemories()
    #expect(keeper.hasKeptMemories)
    keeper.takeOverKeeping(of: workers)
    keeper.takeOverKeeping(of: workers)
    #expect(logged == "")
    #expect(try started(1) && eventually { earlier.end == .taken })
    #expect(!keeper.hasKeptMemories && hibernation.kept.workers == ["web"])
  }

  @Test func `The earlier keeper ends at once if no later daemon needs one`() throws {
    let earlier = try EarlierKeeper(at: socket)
    processes.set { $0.forbidsStrangers = false }
    let keeper = starter()
    keeper.collectKeptMemories()
    keeper.takeOverKeeping(of: WorkerRegistry())
    #expect(try eventually { earlier.end == .taken })
    #expect(pids.isEmpty)
  }
}

@Suite("The standby pager's start") struct StandbyStarterTests {
  private final class World {
    typealias Outcome = JobOutcome<Result<Int, any Error>>
    var waiting: [(Outcome) -> Void] = []
    var used: [Int] = []
    var lines: [String] = []
    var ended: Set<Int> = []
  }
  private let world = World()

  private func starter(hasSuccessors: Bool = true) -> StandbyStarter<Int> {
    StandbyStarter(hasSuccessors: hasSuccessors) { [world] in
      world.waiting.append($0)
    } hasEnded: { [world] in
      world.ended.contains($0)
    } use: { [world] in
      world.used.append($0)
    } log: { [world] in
      world.lines.append($1)
    }
  }

  private func answer(_ outcome: World.Outcome) { world.waiting.removeFirst()(outcome) }

  @Test(
    "The standby pager is used as soon as its program runs, and started again when it was killed")
  func again() {
    let starter = starter()
    starter.startStandbyPager()
    #expect(world.used.isEmpty)
    answer(.done(.success(1)))
    starter.startStandbyPager()
    #expect(world.used == [1] && world.waiting.isEmpty)
    world.ended = [1]
    starter.startStandbyPager()
    answer(.done(.success(2)))
    #expect(world.used == [1, 2] && world.lines.isEmpty)
  }

  @Test("A failed or overdue start of the standby pager is logged, and the next resume tries again")
  func failures() {
    let starter = starter()
    starter.startStandbyPager()
    answer(.done(.failure(TestFailure("no memory"))))
    starter.startStandbyPager()
    answer(.overdue)
    starter.startStandbyPager()
    answer(.busy)
    #expect(
      world.lines == [
        "no standby pager: no memory",
        "no standby pager: its program did not start within 10 s",
      ])
    starter.startStandbyPager()
    answer(.done(.success(1)))
    #expect(world.used == [1])
  }

  @Test func `Trims wait for the one start of the standby pager, however it ends`() {
    let starter = starter()
    var begun: [Int] = []
    starter.startStandbyPager { begun.append(1) }
    starter.startStandbyPager { begun.append(2) }
    #expect(world.waiting.count == 1 && begun == [])
    answer(.overdue)
    #expect(begun == [1, 2])
    starter.startStandbyPager { begun.append(3) }
    answer(.done(.success(1)))
    starter.startStandbyPager { begun.append(4) }
    #expect(begun == [1, 2, 3, 4] && world.waiting.isEmpty)
  }

  @Test func `A wrapper starts no standby pager, because its program doesn't outlive it`() {
    var isBegun = false
    starter(hasSuccessors: false).startStandbyPager { isBegun = true }
    #expect(world.waiting.isEmpty && isBegun)
  }

  @Test("A start of the standby pager that ends after the daemon's parts were freed is dropped")
  func late() {
    starter().startStandbyPager()
    answer(.done(.success(1)))
    #expect(world.used.isEmpty)
  }
}

@Suite("How a worker is resumed") struct ResumeChoiceTests {
  @Test func `The policy decides how a worker is resumed, unless the environment says otherwise`() {
    var rules = LifecyclePolicy().hibernate
    for rule in ResumeRule.allCases {
      rules.resume = rule
      #expect(
        ResumeChoice(environment: nil).preference(rules).rawValue == rule.rawValue, "\(rule)")
      #expect(ResumeChoice(environment: "lazy").preference(rules) == .lazy)
      #expect(ResumeChoice(environment: "eager").preference(rules) == .eager)
      #expect(ResumeChoice(environment: "fast").preference(rules).rawValue == rule.rawValue)
    }
  }
}
