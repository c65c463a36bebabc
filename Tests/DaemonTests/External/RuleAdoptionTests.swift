import DaemonFakes
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import Testing

@testable import Daemon

@Suite("Adoption by rule") struct RuleAdoptionTests {
  private let host = FakeRuleAdoptionHost()
  private let timers = FakeTimers()
  private let workers = WorkerRegistry()
  private let rules: RuleAdoption

  init() {
    rules = RuleAdoption(
      timers: timers, workers: workers,
      released: ReleasedProcesses(path: "/nonexistent/released", bootID: "boot", files: host),
      host: host)
  }

  private static func rule(_ name: String = "r", _ pattern: String = "x") -> AdoptionRule {
    var match = ProcessPattern()
    match.name = [Glob(pattern)]
    return AdoptionRule(name: name, matches: [match])
  }

  private static func found(
    _ pid: Int32, _ matched: RuleLook.Matched = .ready, rule: Int = 0
  ) -> RuleLook.Found {
    RuleLook.Found(
      process: ProcessIdentity(pid: pid, startTime: 5), rule: rule, matched: matched, command: ["x"]
    )
  }

  private func answer(_ found: RuleLook.Found...) {
    var outcome = RuleLook.Outcome()
    outcome.found = found
    host.answerLook(outcome)
  }

  /// A worker of a rule, with the test's own process.
  @discardableResult
  private func worker(_ name: String, of rule: AdoptionRule) throws -> WorkerUnit {
    let runtime = WorkerUnit(
      configuration: WorkerConfiguration(
        name: name, command: ["x", "-v"], policy: rule.effectivePolicy),
      environment: [:], isDeclared: false)
    runtime.external = ExternalWorker(rule: rule.name)
    runtime.process = try .forTest(name)
    workers[runtime.id] = runtime
    return runtime
  }

  @Test("Without a rule the machine's processes aren't looked at")
  func noRules() {
    rules.follow([])
    timers.advance(by: .seconds(60))
    #expect(host.looks.isEmpty && timers.pending.isEmpty)
  }

  @Test("Rules on a machine that doesn't let their workers sleep give a warning")
  func obstacle() {
    host.obstacle = "Yama forbids it"
    rules.follow([])
    #expect(host.lines.isEmpty)
    rules.follow([Self.rule()])
    #expect(host.lines == ["adoption by rule: Yama forbids it"])
  }

  @Test("With a rule it looks at once, and then every 5 s from the end of the last look")
  func looks() {
    rules.follow([Self.rule()])
    #expect(host.looks.count == 1 && timers.pending.isEmpty)
    timers.advance(by: .seconds(60))
    #expect(host.looks.count == 1)
    answer()
    #expect(timers.pending == [.seconds(5)])
    timers.advance(by: .seconds(5))
    #expect(host.looks.count == 2)
  }

  @Test(
    "What a look has found is adopted, one process after the other, each under its rule and pid")
  func adopts() {
    rules.follow([Self.rule("a"), Self.rule("b")])
    answer(Self.found(7), Self.found(8, rule: 1), Self.found(9, .contained(7)))
    #expect(host.adopted.map(\.name) == ["a-7"])
    host.answerAdoption()
    #expect(host.adopted.map(\.name) == ["a-7", "b-8"])
    host.answerAdoption()
    #expect(host.adopted.count == 2)
  }

  @Test("A process that a worker owns by now isn't adopted again")
  func owned() {
    rules.follow([Self.rule()])
    host.owners[7] = WorkerID("r-7")
    answer(Self.found(7))
    #expect(host.adopted.isEmpty && host.lines.isEmpty)
  }

  @Test("A reason why a process isn't adopted is logged once, and again when it is another")
  func reasons() {
    rules.follow([Self.rule()])
    for why in ["it is stopped", "it is stopped", "it is traced"] {
      answer(Self.found(7, .refused(why)))
      timers.advance(by: .seconds(5))
    }
    #expect(
      host.lines == [
        "rule r: pid 7 isn't adopted: it is stopped", "rule r: pid 7 isn't adopted: it is traced",
      ])
  }

  @Test("A refusal at the adoption is logged once, and the adoption is tried at each look")
  func refused() {
    rules.follow([Self.rule()])
    for _ in 0..<2 {
      answer(Self.found(7))
      host.answerAdoption("it has a watchdog")
      timers.advance(by: .seconds(5))
    }
    #expect(host.adopted.count == 2)
    #expect(host.lines == ["rule r: pid 7 isn't adopted: it has a watchdog"])
  }

  @Test("A rule adopts no more processes than its limit, and reports that")
  func limited() throws {
    var rule = Self.rule()
    rule.limit = 1
    try worker("r-3", of: rule)
    rules.follow([rule])
    answer(Self.found(7))
    #expect(host.adopted.isEmpty)
    #expect(
      host.lines == [
        "rule r: pid 7 isn't adopted: the rule has 1 worker, as many as its `limit` allows"
      ])
    workers[WorkerID("r-3")] = nil
    timers.advance(by: .seconds(5))
    answer(Self.found(7))
    #expect(host.adopted.map(\.name) == ["r-7"])
  }

  @Test("A look that takes too long is reported once, and the next one follows")
  func slow() {
    rules.follow([Self.rule()])
    for _ in 0..<2 {
      host.answerLook(nil)
      timers.advance(by: .seconds(5))
    }
    #expect(host.lines.count == 1 && host.looks.count == 3)
  }

  @Test("A process that doesn't answer is named, and passed over until it does")
  func unanswering() throws {
    rules.follow([Self.rule()])
    let process = ProcessIdentity(pid: 9, startTime: 5)
    let hung = try #require(host.looks.last).progress
    hung.reading(process) {
      host.answerLook(nil)
      #expect(host.lines.count == 1 && host.lines[0].contains("pid 9 can't be read"))
      // At once, and those after it.
      #expect(host.looks.count == 2 && host.looks[1].passedOver == [process])
      answer(Self.found(7))
      timers.advance(by: .seconds(5))
      #expect(host.looks.count == 3 && host.looks[2].passedOver == [process])
    }
    #expect(host.adopted.map(\.name) == ["r-7"])
    answer()
    timers.advance(by: .seconds(5))
    #expect(host.looks.count == 4 && host.looks[3].passedOver.isEmpty)
    #expect(host.lines.count == 1)
  }

  @Test("A look that reads one process for 2 s is given up, and its outcome comes too late")
  func hangingLook() {
    let progress = LookProgress()
    var outcomes: [Int?] = []
    let wait = LookWait(for: progress, timers) { outcomes.append($0?.listed) }
    timers.advance(by: .seconds(6))
    progress.reading(ProcessIdentity(pid: 8, startTime: 5)) { timers.advance(by: .seconds(2)) }
    // Another one: it continues.
    progress.reading(ProcessIdentity(pid: 9, startTime: 5)) {
      timers.advance(by: .seconds(2))
      #expect(outcomes.isEmpty)
      timers.advance(by: .seconds(2))
    }
    wait.end(RuleLook.Outcome())
    #expect(outcomes == [nil] && timers.pending.isEmpty)
  }

  @Test("A look that ends in time is waited for no longer")
  func endedLook() {
    var outcomes: [Int?] = []
    let wait = LookWait(for: LookProgress(), timers) { outcomes.append($0?.listed) }
    wait.end(RuleLook.Outcome())
    timers.advance(by: .seconds(60))
    #expect(outcomes == [0] && timers.pending.isEmpty)
  }

  @Test("What earlier rules have found isn't adopted, and everything is looked at again")
  func generations() {
    rules.follow([Self.rule("a")])
    answer(Self.found(7), Self.found(8))
    rules.follow([Self.rule("b")])
    #expect(host.looks.count == 2 && host.looks[1].known.isEmpty)
    host.answerAdoption()
    #expect(host.adopted.map(\.name) == ["a-7"])
    rules.follow([Self.rule("c")])
    // The look of b's time is still under way, and is of no use.
    #expect(host.looks.count == 2)
    answer(Self.found(9))
    #expect(host.adopted.count == 1 && host.looks.count == 3)
  }

  @Test("Rules that are the same change nothing")
  func unchanged() throws {
    rules.follow([Self.rule()])
    answer()
    try worker("r-3", of: Self.rule())
    rules.follow([Self.rule()])
    #expect(host.looks.count == 1 && host.examined.isEmpty)
  }

  @Test("When the rules change, each of their workers gets its rule's policy, or is released")
  func changed() throws {
    let kept = try worker("r-3", of: Self.rule())
    try worker("s-4", of: Self.rule("s"))
    workers[WorkerID("by-hand")] = WorkerUnit(
      configuration: WorkerConfiguration(name: "by-hand", command: ["y"], policy: .init()),
      environment: [:], isDeclared: false)
    var new = Self.rule("t")
    new.mode = .manage
    new.mayTerminate = true
    new.importance = 9
    rules.follow([new])
    #expect(host.examined.map { $0.map(\.id.name).sorted() } == [["r-3", "s-4"]])
    #expect(host.examined.first?.first?.command == ["x", "-v"])
    host.answerExamination([kept.id: new])
    #expect(host.releases.map(\.name) == ["s-4"] && host.changed == [kept.id])
    #expect(kept.external?.rule == "t" && kept.external?.mayBeTerminated == true)
    #expect(kept.configuration.policy.mode == .enforce && kept.configuration.importance == 9)
  }

  @Test("An examination that takes too long, and a release that fails, are tried again")
  func retried() throws {
    try worker("r-3", of: Self.rule())
    rules.follow([])
    host.answerExamination(nil)
    #expect(host.releases.isEmpty)
    host.releaseFailure = "the disk is full"
    timers.advance(by: .seconds(30))
    host.answerExamination([:])
    timers.advance(by: .seconds(30))
    host.releaseFailure = nil
    host.answerExamination([:])
    #expect(host.releases.map(\.name) == ["r-3", "r-3"])
    #expect(host.lines.contains("r-3 can't be released: the disk is full"))
  }

  @Test("Nothing is adopted while the daemon ends")
  func closing() {
    rules.follow([Self.rule()])
    host.isClosing = true
    answer(Self.found(7))
    timers.advance(by: .seconds(60))
    #expect(host.adopted.isEmpty && host.looks.count == 1)
  }

  @Test("A process that was released is named to each look, until its rule chooses otherwise")
  func released() {
    rules.follow([Self.rule()])
    let process = ProcessIdentity(pid: 7, startTime: 5)
    rules.wasReleased(process, from: "r")
    answer()
    timers.advance(by: .seconds(5))
    #expect(host.looks.last?.released == [process])
    #expect(host.files["/nonexistent/released"]?.hasPrefix("boot\n7 5 ") == true)
    answer()
    var managed = Self.rule()
    managed.mode = .manage
    rules.follow([managed])
    #expect(host.looks.last?.released == [process])
    answer()
    rules.follow([Self.rule("r", "y")])
    #expect(host.looks.last?.released == [])
    #expect(host.files["/nonexistent/released"] == "boot\n")
  }
}
