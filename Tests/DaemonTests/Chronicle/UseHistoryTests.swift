import Control
import Journal
import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("How often workers are used") struct UseHistoryTests {
  private let web = WorkerID("web")

  private func history(_ seconds: [Int64]) -> UseHistory {
    var history = UseHistory()
    history.record(.launched(web), at: .zero)
    for second in seconds { history.record(.activity(web), at: .zero + .seconds(second)) }
    return history
  }

  @Test func `Signs of use that follow each other closely are one use`() throws {
    let uses = try #require(history([10, 12, 14, 44, 46, 106, 136, 166]).uses(of: web))
    #expect(uses.count == 5 && uses.last?.code == "active")
    #expect(uses.medianQuiet == .seconds(30))
    #expect(uses.perHour(at: .zero + .seconds(1800)) == 10)
    #expect(uses.perHour(at: .zero + .seconds(20)) == nil, "too early")
  }

  @Test func `A worker that was never used has no use, and a removed one is forgotten`() throws {
    var history = history([])
    let uses = try #require(history.uses(of: web))
    #expect(uses.count == 0 && uses.last == nil && uses.medianQuiet == nil)
    history.record(.removed(web), at: .zero)
    #expect(history.uses(of: web) == nil)
  }

  @Test func `Of many uses the last 64 count for what is usual`() throws {
    let uses = try #require(
      history((0..<100).map { $0 < 36 ? $0 * 1000 : 36_000 + ($0 - 36) * 60 }).uses(of: web))
    #expect(uses.count == 100 && uses.all.count == 64 && uses.medianQuiet == .seconds(60))
    #expect(uses.perHour(at: .zero + .seconds(36_000 + 3840)) == 60)
  }

  @Test func `The advice names the key that keeps a worker awake or in memory`() {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = .seconds(30)
    policy.hibernate.enabled = true
    policy.hibernate.after = .seconds(600)
    func key(_ seconds: Int64) -> String? {
      ActivityReport.Advice(.seconds(seconds), policy)?.key
    }
    #expect(key(20) == "background.suspend_after")
    #expect(key(100) == "hibernate.after" && key(700) == nil)
    policy.hibernate.enabled = false
    #expect(key(100) == nil)
    policy.background.suspendAfter = nil
    #expect(key(100) == "background.suspend_after")
  }

  @Test func `Under foreground.mode activity the idle time is named first if it blocks`() {
    var policy = LifecyclePolicy()
    policy.foreground.mode = .activity
    policy.foreground.idleAfter = .seconds(300)
    policy.background.suspendAfter = .seconds(30)
    func key(_ seconds: Int64) -> String? {
      ActivityReport.Advice(.seconds(seconds), policy)?.key
    }
    #expect(key(60) == "foreground.idle_after" && key(320) == "foreground.idle_after")
    policy.foreground.idleAfter = .seconds(10)
    #expect(key(5) == "foreground.idle_after" && key(35) == "background.suspend_after")
    policy.hibernate.enabled = true
    policy.hibernate.after = .seconds(60)
    #expect(key(90) == "hibernate.after" && key(110) == nil)
  }

  @Test func `Uses at regular times are named as possible health checks, others aren't`() {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = .seconds(60)
    func advice(_ seconds: [Int64], isServer: Bool = true) -> ActivityReport.Advice? {
      history(seconds).uses(of: web).flatMap {
        ActivityReport($0, policy: policy, isServer: isServer, at: .zero + .seconds(1000)).advice
      }
    }
    // The uses are noticed up to 2 s late, and once the operator used the worker in between.
    let checks = [0, 30, 61, 90, 120, 151, 165, 180, 210, 240, 270, 301].map(Int64.init)
    #expect(advice(checks)?.key == "health_checks_while_asleep")
    #expect(advice(checks)?.text.hasPrefix("it is used every 30 s: ") == true)
    // The worker polls by itself.
    #expect(advice(checks, isServer: false)?.key == "background.suspend_after")
    let visits = [0, 7, 50, 58, 120, 126, 180, 230, 237, 300, 330].map(Int64.init)
    #expect(advice(visits)?.key == "background.suspend_after")
  }

  @Test func `A sample names what showed the last use`() throws {
    let uses = try #require(history([10, 20]).uses(of: web))
    func last(_ sign: SignOfUse?) -> String? {
      ActivityReport(uses, policy: LifecyclePolicy(), sign: sign, at: .zero + .seconds(30)).last?
        .text
    }
    #expect(last(nil) == Cause.active.sentence)
    #expect(last(.output)?.hasPrefix("output") == true)
    #expect(last(.traffic)?.hasPrefix("traffic") == true)
  }

  @Test func `Uses of an earlier run count, and none of them is the last use of this one`() throws {
    let uses = try #require(history([10, 600, 1000]).uses(of: web))
    func report(launchedAt seconds: Int64, at now: Int64) -> ActivityReport {
      ActivityReport(
        uses, policy: LifecyclePolicy(), launchedAt: .zero + .seconds(seconds),
        at: .zero + .seconds(now))
    }
    let new = report(launchedAt: 2000, at: 2060)
    #expect(new.last == nil && new.lastSecondsAgo == nil && new.launchedSecondsAgo == 60)
    #expect(new.uses == 3 && new.overSeconds == 2060)
    let used = report(launchedAt: 900, at: 1060)
    #expect(used.last?.code == "active" && used.lastSecondsAgo == 60)
    #expect(report(launchedAt: 0, at: 1060).launchedSecondsAgo == nil)
  }

  @Test func `Advice needs five uses`() throws {
    let policy = LifecyclePolicy()
    func advice(_ seconds: [Int64]) -> ActivityReport.Advice? {
      history(seconds).uses(of: web).flatMap {
        ActivityReport($0, policy: policy, at: .zero + .seconds(100)).advice
      }
    }
    #expect(advice([0, 6, 12, 18]) == nil)
    #expect(advice([0, 6, 12, 18, 24])?.key == "background.suspend_after")
  }
}

@Suite("Uses of workers over a restart of the daemon") struct SavedUsesTests {
  private let web = WorkerID("web")
  private let scratch: Scratch
  private let queue = WorkQueue(name: "test")
  private let lines = LoggedLines()

  init() throws { scratch = try Scratch(["reports/.keep": ""]) }

  private func keeper(_ seconds: Int64) -> UseKeeper {
    UseKeeper(
      directory: "\(scratch.path)/reports", queue: queue,
      wall: { WallTime(nanoseconds: seconds * 1_000_000_000) }, log: lines.log)
  }

  /// Records uses at these seconds of a daemon that ends at second 1000.
  private func earlier(_ seconds: [Int64]) {
    let keeper = keeper(50_000)
    keeper.begin(at: .zero)
    keeper.record(.launched(web), at: .zero)
    for second in seconds { keeper.record(.activity(web), at: .zero + .seconds(second)) }
    keeper.save(at: .zero + .seconds(1000))
    #expect(queue.drain(within: .seconds(60)))
  }

  @Test func `The next daemon continues with the last one's uses, by its own clock`() throws {
    earlier([100, 400, 700])
    // The machine has started again meanwhile: its clock begins from zero, and 500 s have passed.
    let next = keeper(50_500)
    let now = Instant.zero + .seconds(20)
    next.begin(at: now)
    next.record(.activity(web), at: now)
    let uses = try #require(next.history.uses(of: web))
    #expect(uses.count == 4 && uses.last?.code == "active")
    #expect((now - uses.since).seconds == 1500)
    #expect(uses.all.map { (now - $0.began).seconds } == [1400, 1100, 800, 0])
    #expect(uses.medianQuiet == .seconds(300))
    #expect(lines.all.isEmpty)
  }

  @Test func `A clock that was set back makes no use happen in the future`() throws {
    earlier([100])
    let next = keeper(10)
    next.begin(at: .zero + .seconds(20))
    let uses = try #require(next.history.uses(of: web))
    #expect((.zero + .seconds(20) - uses.since).seconds == 1000)
  }

  @Test func `A damaged file is logged, and the uses begin again`() throws {
    earlier([100])
    _ = try scratch.write("reports/uses", "dormouse uses 1\n{}\n")
    let next = keeper(50_500)
    next.begin(at: .zero)
    #expect(next.history.all.isEmpty)
    #expect(lines.all.contains { $0.contains("is damaged") })
  }

  @Test func `The thousand workers that were used last are kept, each with 64 uses`() {
    let keeper = keeper(50_000)
    keeper.begin(at: .zero)
    for number in 0..<1200 {
      keeper.record(
        .activity(WorkerID("w\(number)")), at: .zero + .seconds(Int64(number)))
    }
    for use in 0..<100 {
      keeper.record(.activity(web), at: .zero + .seconds(Int64(2000 + use * 10)))
    }
    keeper.save(at: .zero + .seconds(4000))
    #expect(queue.drain(within: .seconds(60)))
    let next = self.keeper(50_000)
    next.begin(at: .zero + .seconds(4000))
    #expect(next.history.all.count == 1000 && next.history.uses(of: WorkerID("w100")) == nil)
    #expect(next.history.uses(of: web)?.all.count == 64)
    #expect(next.history.uses(of: web)?.count == 100)
  }

  @Test func `The counts of the day aren't confused by the file beside them`() throws {
    earlier([100])
    DayStore(directory: "\(scratch.path)/reports").trim()
    #expect(try readText("\(scratch.path)/reports/uses").hasPrefix("dormouse uses 1\n"))
  }
}
