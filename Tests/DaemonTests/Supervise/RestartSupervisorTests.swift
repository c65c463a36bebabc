import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Restarts of workers that have ended") struct RestartSupervisorTests {
  private let world = RestartWorld()
  private var host: FakeRestartHost { world.host }
  private var supervisor: RestartSupervisor { world.supervisor }
  private let web = WorkerID("web")

  @Test("A worker that keeps failing is restarted after a pause that doubles, up to the longest")
  func backoffGrows() throws {
    world.add("web", RestartRules(.always, backoff: Backoff(max: .seconds(8)), giveUp: nil))
    for seconds in [1, 2, 4, 8, 8] {
      world.run()
      #expect(world.delay() == .seconds(seconds))
      host.timers.advance(by: .seconds(seconds) - .nanoseconds(1))
      let count = host.started.count
      host.timers.advance(by: .nanoseconds(1))
      #expect(host.started.count == count + 1)
      #expect(supervisor.plan(of: web) == nil)
    }
    #expect(host.names == Array(repeating: "web", count: 5))
    #expect(supervisor.restarts(of: web) == 5)
    #expect(host.lines.first == "web: restarts in 1 s: exited with status 4")
  }

  @Test("A run that is longer than the longest pause makes the next pause the shortest")
  func backoffResets() {
    world.add("web", RestartRules(.always, backoff: Backoff(max: .seconds(8)), giveUp: nil))
    for _ in 0..<4 { world.run() }
    #expect(world.delay() == .seconds(8))
    world.run(for: .seconds(9))
    #expect(world.delay() == .seconds(1))
  }

  @Test("Restarts end after give_up, and the worker's problem names the last failure")
  func giveUp() {
    world.add("web", RestartRules(.always, giveUp: .init(restarts: 2, window: .seconds(600))))
    for _ in 0..<2 {
      world.run()
      host.timers.advance(by: .seconds(10))
    }
    world.run()
    #expect(supervisor.plan(of: web) == nil && host.timers.pending == [])
    let problem = supervisor.problem(of: web)
    #expect(problem?.hasPrefix("gave up after 2 restarts within 10 m") == true)
    #expect(problem?.contains("exited with status 4") == true)
    #expect(host.lines.last?.contains("gave up after 2 restarts") == true)
    // Out of the window they don't count, and a new run has no problem.
    host.timers.advance(by: .seconds(700))
    world.launch()
    #expect(supervisor.problem(of: web) == nil)
    world.end()
    #expect(world.delay() != nil)
  }

  @Test(
    "The key restart.when decides which ends are followed by a restart",
    arguments: [
      (RestartRules.Condition.never, false, false), (.afterShortage, false, false),
      (.onFailure, false, true),
      (.always, true, true), (.unlessStopped, true, true),
    ])
  func conditions(condition: RestartRules.Condition, afterSuccess: Bool, afterFailure: Bool) {
    world.add("web", RestartRules(condition, giveUp: nil))
    world.run("web", .exited(.exited(0)))
    #expect((world.delay() != nil) == afterSuccess)
    #expect(supervisor.lastEnd(of: web) == .init(succeeded: true, wasStopped: false))
    for cause in [
      RestartWorld.failure, .exited(.signaled(11)), .watchdog("liveness probe failed"),
      .failed("no such program"),
    ] {
      world.run("web", cause)
      #expect((world.delay() != nil) == afterFailure, "\(cause)")
      #expect(supervisor.lastEnd(of: web) == .init(succeeded: false, wasStopped: false))
    }
    // A person's.
    world.run("web", .requested(.stop))
    #expect(supervisor.plan(of: web) == nil)
    #expect(supervisor.lastEnd(of: web)?.wasStopped == true)
  }

  @Test("A worker that can't be launched has failed, even where its run before had succeeded")
  func failedLaunch() {
    world.add("web", RestartRules(.onFailure, giveUp: nil))
    world.run("web", .exited(.exited(0)))
    #expect(world.delay() == nil)
    world.run("web", .failed("no such program"))
    #expect(world.delay() == .seconds(1))
    #expect(supervisor.exits(of: web)?.last?.status == nil)
    #expect(supervisor.exits(of: web)?.first?.status == .exited(0))
  }

  @Test("Workers terminated for memory are restarted at normal pressure, one by one, by importance")
  func memory() {
    world.add("less", importance: 10)
    world.add("most", importance: 90)
    world.add("also", importance: 10)
    for condition in [RestartRules.Condition.never, .onFailure] {
      world.add(condition.rawValue, RestartRules(condition, giveUp: nil))
    }
    host.pressure = .critical
    for name in ["less", "most", "also", "no", "on-failure"] {
      world.run(name, .pressure(.critical))
    }
    host.timers.advance(by: .seconds(600))
    #expect(host.names == [])
    let plan = RestartPlan.waitingForMemory(why: "memory pressure was critical")
    #expect(supervisor.plan(of: WorkerID("less")) == plan)
    #expect(supervisor.plan(of: WorkerID("on-failure")) == nil)

    host.pressure = .normal
    supervisor.startWhatFits()
    #expect(
      ["most", "also", "less"].map { world.delay(of: $0) } == [
        .seconds(1), .seconds(2), .seconds(3),
      ])
    host.timers.advance(by: .seconds(3))
    #expect(host.names == ["most", "also", "less"])
  }

  @Test("A worker terminated for memory isn't started when the pressure rises during its pause")
  func memoryAgain() {
    world.add()
    host.pressure = .urgent
    world.run("web", .pressure(.urgent))
    host.pressure = .normal
    supervisor.startWhatFits()
    host.pressure = .warning
    host.timers.advance(by: .seconds(5))
    #expect(host.names == [] && supervisor.restarts(of: web) == 0)
    #expect(
      supervisor.plan(of: web) == .waitingForMemory(why: "memory pressure was urgent"))
    host.pressure = .normal
    supervisor.startWhatFits()
    host.timers.advance(by: .seconds(1))
    #expect(host.names == ["web"])
  }

  @Test("Terminations for memory don't count for give_up, and their pauses grow with short runs")
  func memoryStreak() {
    world.add("web", RestartRules(.always, giveUp: .init(restarts: 1, window: .seconds(600))))
    for seconds in [1, 2, 4] {
      // Normal again already when the worker has ended.
      world.run("web", .pressure(.critical))
      #expect(world.delay() == .seconds(seconds))
    }
    world.run("web", for: .seconds(61), .pressure(.critical))
    #expect(world.delay() == .seconds(1))
    world.run()
    #expect(world.delay() == .seconds(1) && supervisor.problem(of: web) == nil)
  }

  @Test("The operator's stop cancels the planned restart")
  func stop() {
    for verb in [Request.Verb.stop, .terminate] {
      world.add()
      world.run()
      supervisor.personAsks(verb, web)
      #expect(supervisor.plan(of: web) == nil && host.timers.pending == [])
      host.pressure = .critical
      world.run("web", .pressure(.critical))
      supervisor.personAsks(verb, web)
      host.pressure = .normal
      supervisor.startWhatFits()
      #expect(supervisor.plan(of: web) == nil && host.names == [])
    }
  }

  @Test("The operator's start resets the failures before it, and other verbs change nothing")
  func start() {
    for verb in [Request.Verb.start, .restart] {
      world.add("web", RestartRules(.always, giveUp: .init(restarts: 2, window: .seconds(600))))
      world.run()
      host.timers.advance(by: .seconds(1))
      world.run()
      supervisor.personAsks(.wake, web)
      #expect(world.delay() == .seconds(2) && supervisor.restarts(of: web) == 1)
      supervisor.personAsks(verb, web)
      #expect(supervisor.plan(of: web) == nil && supervisor.restarts(of: web) == 0)
      world.run()
      #expect(world.delay() == .seconds(1) && supervisor.problem(of: web) == nil)
    }
  }

  @Test(
    "A stop by the operator outlives the daemon only with unless-stopped, and until the next start")
  func unlessStopped() {
    world.add()
    supervisor.personAsks(.stop, web)
    #expect(host.stopped == nil)
    host.terms["web"]?.rules.condition = .unlessStopped
    supervisor.personAsks(.stop, web)
    #expect(host.stopped == "web\n")
    supervisor.personAsks(.start, web)
    #expect(host.stopped == "")
    // Nor does it when the rule is another, or the worker is no longer declared.
    supervisor.personAsks(.stop, web)
    host.terms["web"]?.rules.condition = .always
    supervisor.termsChanged(of: web)
    #expect(host.stopped == "")
    host.terms["web"]?.rules.condition = .unlessStopped
    supervisor.personAsks(.terminate, web)
    supervisor.forgetPlans(of: web)
    #expect(host.stopped == "")
    supervisor.personAsks(.stop, web)
    host.files.answer("No space left on device")
    #expect(host.lines.last?.hasSuffix("No space left on device") == true)
  }

  @Test("A changed configuration cancels a planned restart only if it allows none")
  func termsChanged() {
    world.add()
    world.run()
    host.terms["web"]?.rules.condition = .onFailure
    supervisor.termsChanged(of: web)
    #expect(world.delay() == .seconds(1))
    host.terms["web"]?.rules.condition = .never
    supervisor.termsChanged(of: web)
    #expect(supervisor.plan(of: web) == nil && host.timers.pending == [])
  }

  @Test("A daemon that is ending starts no workers, not even those whose restart was planned")
  func closing() {
    world.add()
    world.add("db")
    world.run()
    host.isClosing = true
    world.run("db")
    #expect(supervisor.plan(of: WorkerID("db")) == nil)
    host.timers.advance(by: .seconds(60))
    #expect(host.names == [])
    // What has been is kept.
    #expect(supervisor.exits(of: WorkerID("db"))?.count == 1)
  }

  @Test("A removed worker isn't started, and another of its name begins without its history")
  func removed() {
    world.add()
    var ends: [Answer?] = []
    world.run()
    world.launch()
    #expect(supervisor.watch(web) { ends.append($0) })
    world.end()
    #expect(ends.count == 1)
    supervisor.remove(web)
    #expect(host.timers.pending == [] && supervisor.exits(of: web) == nil)
    // Its transitions aren't of interest any more.
    world.run()
    supervisor.personAsks(.stop, web)
    #expect(host.timers.pending == [] && supervisor.exits(of: web) == nil)
    world.add()
    #expect(supervisor.exits(of: web) == [] && supervisor.launchedAt(of: web) == .zero)
    world.run()
    #expect(world.delay() == .seconds(1))
  }

  @Test("A worker that is removed while it runs isn't started after its end")
  func removedRunning() {
    world.add()
    world.launch()
    supervisor.forgetPlans(of: web)
    let transition = host.transit("web", to: .terminated, .exited(.signaled(15)))
    host.states["web"] = nil
    supervisor.record(transition)
    #expect(supervisor.plan(of: web) == nil && host.timers.pending == [])
  }

  @Test("An external worker is never restarted, and its ends are recorded")
  func external() {
    world.add()
    host.terms["web"]?.isExternal = true
    world.run()
    #expect(supervisor.plan(of: web) == nil && supervisor.exits(of: web)?.count == 1)
  }

  @Test(
    "A restart whose launch fails is logged, and the failure counts as an end")
  func restartFails() {
    world.add()
    world.run()
    host.timers.advance(by: .seconds(1))
    world.run("web", .failed("no such program"))
    host.answer("web", .failed, "web: no such program")
    #expect(host.lines.last == "web: no such program")
    #expect(world.delay() == .seconds(2))
  }
}
