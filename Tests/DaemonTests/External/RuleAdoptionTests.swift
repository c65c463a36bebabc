import DaemonFakes
import Glibc
import Lifecycle
import Linux
import Policy
import Testing

@testable import Daemon

@Suite("Adoption by rule") struct RuleAdoptionTests {
  private let world: AdoptionWorld
  private let rules: RuleAdoption
  private let timers: FakeLoop
  private let processes: FakeWorkerProcesses

  init() throws {
    world = try AdoptionWorld()
    (rules, timers, processes) = (world.base.rules, world.base.timers, world.base.workerProcesses)
  }

  /// A pid that no process has.
  private static func pid(_ number: Int32) -> Int32 { AdoptionWorld.pid + number }

  private static func process(_ number: Int32) -> ProcessIdentity {
    ProcessIdentity(pid: pid(number), startTime: 5)
  }

  /// Whether these processes were examined, in order.
  private func examined(_ expected: (rule: String, number: Int32)...) -> Bool {
    processes.examined
      == expected.map { "\(Self.pid($0.number)) as \($0.rule)-\(Self.pid($0.number))" }
  }

  /// Answers the current examination: the process can be adopted, or can't be for this reason.
  private func answerAdoption(_ number: Int32, _ refusal: String? = nil) throws {
    if let refusal { return processes.answer(examination: .done(.failure(.refused(refusal)))) }
    var root = try AdoptionWorld.stat(Self.pid(number))
    root.startTime = 5
    processes.answer(
      examination: .done(
        .success(ExternalProcess(root: root, tree: ProcessTree(processes: [root])))))
  }

  private static func rule(_ name: String = "r", _ pattern: String = "x") -> AdoptionRule {
    var match = ProcessPattern()
    match.name = [Glob(pattern)]
    return AdoptionRule(name: name, matches: [match])
  }

  private static func match(
    _ number: Int32, _ matched: RuleScan.Matched = .ready, rule: Int = 0
  ) -> RuleScan.Match {
    RuleScan.Match(process: process(number), rule: rule, matched: matched, command: ["x"])
  }

  private func answer(_ matches: RuleScan.Match...) {
    var outcome = RuleScan.Outcome()
    outcome.matches = matches
    processes.answer(ruleScan: outcome)
  }

  /// Adds a worker of a rule, with the test's own process.
  @discardableResult
  private func worker(_ name: String, of rule: AdoptionRule) throws -> WorkerUnit {
    let worker = WorkerUnit.forTest(name, isDeclared: false) {
      ($0.command, $0.policy) = (["x", "-v"], rule.effectivePolicy)
    }
    worker.external = ExternalWorker(rule: rule.name)
    worker.process = try .forTest(name)
    world.workers[worker.id] = worker
    world.driver.send(.adopted(worker.id, worker.profile, .background))
    return worker
  }

  @Test func `Without a rule the machine's processes aren't scanned`() {
    rules.follow([])
    timers.advance(by: .seconds(60))
    #expect(processes.ruleScans.isEmpty && timers.pending.isEmpty)
  }

  @Test func `Rules on a machine that doesn't let their workers sleep give a warning`() {
    world.base.strangers.set { $0.forbidsStrangers = true }
    rules.follow([])
    #expect(world.lines("adoption by rule") == 0)
    rules.follow([Self.rule()])
    #expect(
      world.lines("adoption by rule: Yama (kernel.yama.ptrace_scope) keeps this daemon from") == 1)
  }

  @Test func `With a rule a scan begins at once, and then 5 s after the end of the last one`() {
    rules.follow([Self.rule()])
    #expect(processes.ruleScans.count == 1 && timers.pending.isEmpty)
    timers.advance(by: .seconds(60))
    #expect(processes.ruleScans.count == 1)
    answer()
    #expect(timers.pending == [.seconds(5)])
    timers.advance(by: .seconds(5))
    #expect(processes.ruleScans.count == 2)
  }

  @Test func `Matches of a scan are adopted in turn, each under its rule and pid`() throws {
    rules.follow([Self.rule("a"), Self.rule("b")])
    answer(Self.match(7), Self.match(8, rule: 1), Self.match(9, .contained(7)))
    #expect(examined(("a", 7)))
    try answerAdoption(7)
    #expect(examined(("a", 7), ("b", 8)))
    try answerAdoption(8)
    #expect(processes.examined.count == 2)
    #expect(world.workers.values.compactMap { $0.external?.rule }.sorted() == ["a", "b"])
  }

  @Test func `A process that a worker owns by now isn't adopted again`() throws {
    try worker("r-3", of: Self.rule("r", "y"))
    rules.follow([Self.rule()])
    let process = try ProcessStat.read(getpid()).identity
    answer(RuleScan.Match(process: process, rule: 0, matched: .ready, command: ["x"]))
    #expect(processes.examined.isEmpty && world.lines("isn't adopted") == 0)
  }

  @Test func `A reason why a process isn't adopted is logged once, and again when it is another`() {
    rules.follow([Self.rule()])
    for reason in ["it is stopped", "it is stopped", "it is traced"] {
      answer(Self.match(7, .refused(reason)))
      timers.advance(by: .seconds(5))
    }
    #expect(world.lines("rule r: pid \(Self.pid(7)) isn't adopted: it is stopped") == 1)
    #expect(world.lines("rule r: pid \(Self.pid(7)) isn't adopted: it is traced") == 1)
  }

  @Test func `A refusal at the adoption is logged once, and each scan tries again`() throws {
    rules.follow([Self.rule()])
    for _ in 0..<2 {
      answer(Self.match(7))
      try answerAdoption(7, "it has a watchdog")
      timers.advance(by: .seconds(5))
    }
    #expect(examined(("r", 7), ("r", 7)))
    #expect(world.lines("rule r: pid \(Self.pid(7)) isn't adopted: it has a watchdog") == 1)
  }

  @Test func `A rule adopts no more processes than its limit, and reports that`() throws {
    var rule = Self.rule()
    rule.limit = 1
    try worker("r-3", of: rule)
    rules.follow([rule])
    answer(Self.match(7))
    #expect(processes.examined.isEmpty)
    #expect(
      world.lines(
        "rule r: pid \(Self.pid(7)) isn't adopted: the rule has 1 worker, as many as its "
          + "`limit` allows") == 1)
    world.workers[WorkerID("r-3")] = nil
    timers.advance(by: .seconds(5))
    answer(Self.match(7))
    #expect(examined(("r", 7)))
  }

  @Test func `A scan that takes too long is reported once, and the next one follows`() {
    rules.follow([Self.rule()])
    for _ in 0..<2 {
      processes.answer(ruleScan: nil)
      timers.advance(by: .seconds(5))
    }
    #expect(world.lines("/proc can't be read in time") == 1 && processes.ruleScans.count == 3)
  }

  @Test func `A process that doesn't answer is named, and passed over until it does`() throws {
    rules.follow([Self.rule()])
    let process = ProcessIdentity(pid: 9, startTime: 5)
    let hung = try #require(processes.ruleScans.last).progress
    hung.reading(process) {
      processes.answer(ruleScan: nil)
      #expect(world.lines("pid 9 can't be read") == 1)
      // The next scans pass over the process.
      #expect(processes.ruleScans.count == 2 && processes.ruleScans[1].passedOver == [process])
      answer(Self.match(7))
      timers.advance(by: .seconds(5))
      #expect(processes.ruleScans.count == 3 && processes.ruleScans[2].passedOver == [process])
    }
    #expect(examined(("r", 7)))
    answer()
    timers.advance(by: .seconds(5))
    #expect(processes.ruleScans.count == 4 && processes.ruleScans[3].passedOver.isEmpty)
    #expect(world.lines("can't be read") == 1)
  }

  @Test func `Matches of earlier rules aren't adopted, and everything is scanned again`() throws {
    rules.follow([Self.rule("a")])
    answer(Self.match(7), Self.match(8))
    rules.follow([Self.rule("b")])
    #expect(processes.ruleScans.count == 2 && processes.ruleScans[1].entries.isEmpty)
    try answerAdoption(7)
    #expect(examined(("a", 7)) && processes.chosenFor.last?.count == 1)
    rules.follow([Self.rule("c")])
    // The scan for the rules of b is still under way, and its matches aren't used.
    #expect(processes.ruleScans.count == 2)
    answer(Self.match(9))
    #expect(processes.examined.count == 1 && processes.ruleScans.count == 3)
  }

  @Test func `Rules that are the same change nothing`() throws {
    rules.follow([Self.rule()])
    answer()
    try worker("r-3", of: Self.rule())
    rules.follow([Self.rule()])
    #expect(processes.ruleScans.count == 1 && processes.chosenFor.isEmpty)
  }

  @Test func `When rules change, their workers get their policy, or are released`() throws {
    let kept = try worker("r-3", of: Self.rule())
    try worker("s-4", of: Self.rule("s"))
    world.workers[WorkerID("by-hand")] = .forTest("by-hand", isDeclared: false)
    var new = Self.rule("t")
    new.mode = .manage
    new.mayTerminate = true
    new.importance = 9
    rules.follow([new])
    #expect(processes.chosenFor.map { $0.map(\.id.name).sorted() } == [["r-3", "s-4"]])
    #expect(processes.chosenFor.first?.first?.command == ["x", "-v"])
    processes.answer(choice: [kept.id: new])
    #expect(world.workers[WorkerID("s-4")] == nil && world.events.contains("released"))
    #expect(world.driver.state.profile(of: kept.id)?.importance == 9)
    #expect(world.recorded("r-3")?.rule == "t")
    #expect(kept.external?.rule == "t" && kept.external?.mayBeTerminated == true)
    #expect(kept.configuration.policy.mode == .enforce && kept.configuration.importance == 9)
  }

  @Test func `A slow examination, and a release that fails, are tried again`() throws {
    let worker = try worker("r-3", of: Self.rule())
    world.move("r-3", to: .hibernated)
    rules.follow([])
    processes.answer(choice: nil)
    #expect(world.state(of: "r-3") == .hibernated)
    timers.advance(by: .seconds(30))
    processes.answer(choice: [:])
    world.driver.send(.resumeFailed(worker.id, "the disk is full", intact: true))
    #expect(world.lines("r-3 can't be released: ") == 1 && world.lines("the disk is full") == 1)
    timers.advance(by: .seconds(30))
    processes.answer(choice: [:])
    #expect(world.state(of: "r-3") == .resuming)
    world.driver.send(.resumed(worker.id, .zero))
    #expect(world.workers.count == 0)
  }

  @Test func `Nothing is adopted while the daemon ends`() {
    rules.follow([Self.rule()])
    world.base.phase.isEnding = true
    answer(Self.match(7))
    timers.advance(by: .seconds(60))
    #expect(processes.examined.isEmpty && processes.ruleScans.count == 1)
  }

  @Test func `A released process is passed to each scan until its rule changes`() {
    let files = world.base.files
    let path = world.base.state.path + "/released"
    rules.follow([Self.rule()])
    let process = Self.process(7)
    rules.didRelease(process, from: "r")
    files.answer()
    answer()
    timers.advance(by: .seconds(5))
    #expect(processes.ruleScans.last?.released == [process])
    #expect(files.texts[path]?.hasPrefix("boot\n\(Self.pid(7)) 5 ") == true)
    answer()
    var managed = Self.rule()
    managed.mode = .manage
    rules.follow([managed])
    files.answer()
    #expect(processes.ruleScans.last?.released == [process])
    answer()
    rules.follow([Self.rule("r", "y")])
    files.answer()
    #expect(processes.ruleScans.last?.released == [])
    #expect(files.texts[path] == "boot\n")
  }
}
