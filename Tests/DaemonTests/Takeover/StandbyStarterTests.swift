import Glibc
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon
@testable import Hibernation

@Suite("The standby pager's start") struct StandbyStarterTests {
  private final class World {
    typealias Outcome = JobOutcome<Result<Int, any Error>>
    var waiting: [(Outcome) -> Void] = []
    var used: [Int] = []
    var lines: [String] = []
    var ended: Set<Int> = []
    var reports: [Int: () -> Void] = [:]
  }
  private let world = World()
  private let timers = FakeLoop()

  private func starter(hasSuccessors: Bool = true) -> StandbyStarter<Int> {
    StandbyStarter(
      hasSuccessors: hasSuccessors, timers: timers, log: { [world] in world.lines.append($1) },
      start: { [world] in world.waiting.append($0) },
      hasEnded: { [world] in world.ended.contains($0) }, use: { [world] in world.used.append($0) },
      whenEnded: { [world] in world.reports[$0] = $1 })
  }

  private func answer(_ outcome: World.Outcome) { world.waiting.removeFirst()(outcome) }

  @Test func `The standby pager is used once it runs, and replaced when killed`() {
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

  @Test func `An ended standby pager is replaced, unless that was done already`() {
    let starter = starter()
    starter.startStandbyPager()
    answer(.done(.success(1)))
    world.ended = [1]
    world.reports[1]?()
    #expect(world.waiting.isEmpty)
    timers.advance(by: .seconds(1))
    answer(.done(.success(2)))
    #expect(world.used == [1, 2] && world.lines.count == 1)
    world.reports[1]?()
    timers.advance(by: .seconds(100))
    #expect(world.waiting.isEmpty && world.lines.count == 1)
  }

  @Test func `A standby pager that can't be replaced is replaced later, with growing pauses`() {
    let starter = starter()
    starter.startStandbyPager()
    answer(.done(.success(1)))
    world.ended = [1]
    world.reports[1]?()
    for pause in [1, 2, 4] {
      timers.advance(by: .seconds(pause) - .milliseconds(1))
      #expect(world.waiting.isEmpty)
      timers.advance(by: .milliseconds(1))
      answer(.done(.failure(TestFailure("no memory"))))
    }
    timers.advance(by: .seconds(8))
    answer(.done(.success(2)))
    timers.advance(by: .seconds(60))
    world.ended = [1, 2]
    world.reports[2]?()
    timers.advance(by: .seconds(1))
    #expect(world.waiting.count == 1, "it ran for a minute")
  }

  @Test func `A standby pager that is killed is replaced while nothing is trimmed`() throws {
    let loop = try EventLoop(check: nil)
    var used: [StandbyPagerConnection] = []
    let starter = StandbyStarter<StandbyPagerConnection>(
      hasSuccessors: true, timers: loop, log: { _, _ in },
      start: { then in
        then(.done(Result { try StandbyPagerConnection(command: ["/bin/sleep", "690"]) }))
      }, hasEnded: { $0.hasEnded() }, use: { used.append($0) },
      whenEnded: { StandbyStarter<StandbyPagerConnection>.waitForEnd(of: $0, on: loop, then: $1) })
    defer {
      for connection in used where !connection.hasEnded() {
        kill(connection.process.pid, SIGKILL)
        waitForChild(connection.process.pid)
      }
    }
    starter.startStandbyPager()
    let killed = try #require(used.first).process.identity
    kill(killed.pid, SIGKILL)
    try loop.turn { used.count == 2 }
    #expect(used.last?.process.identity.hasEnded == false && killed.hasEnded)
  }

  @Test func `A failed or overdue start of the standby pager is logged and repeated`() {
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

  @Test func `A start of the standby pager that ends after the daemon is dropped`() {
    starter().startStandbyPager()
    answer(.done(.success(1)))
    #expect(world.used.isEmpty)
  }
}

@Suite("How a worker is resumed") struct ResumePreferenceTests {
  @Test("The policy decides how a worker is resumed, unless the environment says otherwise")
  func overridden() throws {
    let world = try AdapterWorld()
    var rules = LifecyclePolicy().hibernate
    for rule in ResumeRule.allCases {
      rules.resume = rule
      #expect(world.makeMemory().resumePreference(rules).rawValue == rule.rawValue, "\(rule)")
      for preference in [ResumePreference.lazy, .eager] {
        #expect(world.makeMemory(resumeOverride: preference).resumePreference(rules) == preference)
      }
    }
  }
}
