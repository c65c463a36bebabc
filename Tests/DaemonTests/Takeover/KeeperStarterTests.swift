import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import Synchronization
import TestSupport
import Testing

@testable import Daemon

/// Keepers that are numbers, and an earlier one that hands over what a test says.
private final class Means: KeeperMeans {
  struct State {
    var forbidsStrangers = true
    var earlier: [ProcessIdentity: Descriptor]?
    var started = 0
    var hasEnded = false
    var refusal: String?
    var calls: [String] = []
  }
  let state = Mutex(State())

  func set(_ change: @Sendable (inout State) -> Void) { state.withLock { change(&$0) } }
  var calls: [String] { state.withLock { $0.calls } }

  var forbidsStrangers: Bool { state.withLock { $0.forbidsStrangers } }
  func collect() -> [ProcessIdentity: Descriptor]? { state.withLock { $0.earlier } }
  func memories(in handover: [ProcessIdentity: Descriptor]) -> [ProcessIdentity: Descriptor] {
    handover
  }
  func areTaken(_ handover: [ProcessIdentity: Descriptor]) { set { $0.calls.append("taken") } }
  func requireKeeper() { set { $0.calls.append("required") } }
  func start() throws -> Int {
    try state.withLock {
      if let refusal = $0.refusal { throw TestFailure(refusal) }
      $0.started += 1
      $0.hasEnded = false
      return $0.started
    }
  }
  func hasEnded(_ keeper: Int) -> Bool { state.withLock { $0.hasEnded } }
  func use(
    _ keeper: Int, taking: [String: [ProcessIdentity: Descriptor]],
    from handover: [ProcessIdentity: Descriptor]?
  ) {
    let names = taking.keys.sorted().joined(separator: " ")
    set {
      $0.calls.append("keeper \(keeper) takes [\(names)]\(handover == nil ? "" : " from before")")
    }
  }
  func log(_ priority: DaemonLog.Priority, _ text: String) { set { $0.calls.append(text) } }
}

@Suite("The keeper of what a later daemon needs") struct KeeperStarterTests {
  private let means = Means()

  private func starter(hasSuccessors: Bool = true) -> KeeperStarter<Means> {
    KeeperStarter(means, hasSuccessors: hasSuccessors)
  }

  private static func memory() throws -> (ProcessIdentity, Descriptor) {
    (try ProcessStat.read(getpid()).identity, try Descriptor.open("/dev/null", O_RDONLY))
  }

  @Test("The keeper is started once before the first hibernation, and again when it was killed")
  func once() {
    let before = starter().startKeeperWhereMissing()
    before()
    before()
    #expect(means.calls == ["keeper 1 takes []"])
    means.set { $0.hasEnded = true }
    before()
    #expect(means.calls == ["keeper 1 takes []", "keeper 2 takes []"])
  }

  @Test("No keeper is started if a later daemon can open the memory itself, or there will be none")
  func needless() {
    starter(hasSuccessors: false).startKeeperWhereMissing()()
    means.set { $0.forbidsStrangers = false }
    starter().startKeeperWhereMissing()()
    let keeper = starter()
    keeper.collectKeptMemories()
    keeper.takeOverKeeping(of: WorkerRegistry())
    #expect(means.calls.isEmpty)
  }

  @Test("A keeper that can't be started is logged, and the next hibernation tries again")
  func refused() {
    means.set { $0.refusal = "no process" }
    let before = starter().startKeeperWhereMissing()
    before()
    #expect(
      means.calls == [
        "no worker is hibernated: can't start the keeper that hands memory to the next daemon: no process"
      ])
    means.set { $0.refusal = nil }
    before()
    #expect(means.calls.last == "keeper 1 takes []")
  }

  @Test(
    "Descriptors that an earlier daemon opened are given to its workers and to no other process")
  func givenBack() throws {
    let (process, memory) = try Self.memory()
    means.set { $0.earlier = [process: memory] }
    let keeper = starter()
    #expect(!keeper.hasKeptMemories && keeper.keptMemories(of: [process]).isEmpty)
    keeper.collectKeptMemories()
    #expect(means.calls == ["required"] && keeper.hasKeptMemories)
    let other = ProcessIdentity(pid: process.pid, startTime: process.startTime + 1)
    #expect(keeper.keptMemories(of: [other]).isEmpty)
    #expect(keeper.keptMemories(of: [other, process])[process] === memory)
  }

  @Test("A new keeper takes the descriptors of adopted workers over before the earlier one ends")
  func takenOver() throws {
    let (process, memory) = try Self.memory()
    means.set { $0.earlier = [process: memory] }
    let workers = WorkerRegistry()
    for name in ["web", "other"] { workers[WorkerID(name)] = .forTest(name) }
    let held = try WorkerProcess.forTest(process)
    held.hold(memory, of: process)
    workers[WorkerID("web")]?.process = held
    let keeper = starter()
    keeper.collectKeptMemories()
    keeper.takeOverKeeping(of: workers)
    keeper.takeOverKeeping(of: workers)
    // `use` ends the earlier one when the new one has everything.
    #expect(means.calls == ["required", "keeper 1 takes [web] from before"])
    #expect(!keeper.hasKeptMemories)
  }

  @Test("The earlier keeper ends at once if no later daemon needs one")
  func notNeededAnyMore() throws {
    let (process, memory) = try Self.memory()
    means.set {
      $0.earlier = [process: memory]
      $0.forbidsStrangers = false
    }
    let keeper = starter()
    keeper.collectKeptMemories()
    keeper.takeOverKeeping(of: WorkerRegistry())
    #expect(means.calls == ["taken"])
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

  @Test(
    "A start of the standby pager that fails or is overdue is logged, and the next resume tries again"
  )
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

  @Test("A wrapper starts no standby pager, because its program doesn't outlive it")
  func wrapper() {
    starter(hasSuccessors: false).startStandbyPager()
    #expect(world.waiting.isEmpty)
  }

  @Test("A start of the standby pager that ends after the daemon's parts were freed is dropped")
  func late() {
    starter().startStandbyPager()
    answer(.done(.success(1)))
    #expect(world.used.isEmpty)
  }
}

@Suite("How a worker is resumed") struct ResumeChoiceTests {
  @Test("The policy decides how a worker is resumed, unless the environment says otherwise")
  func choice() {
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
