import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Restarts of workers that have ended") struct RestartSupervisorTests {
  private let world: RestartWorld
  private var supervisor: RestartSupervisor { world.supervisor }
  private let web = WorkerID("web")

  init() throws { world = try RestartWorld() }

  @Test func `A worker that keeps failing is restarted after pauses that double`() throws {
    world.add("web", RestartRules(.always, backoff: Backoff(max: .seconds(8)), giveUp: nil))
    for seconds in [1, 2, 4, 8, 8] {
      world.run()
      #expect(world.delay() == .seconds(seconds))
      world.timers.advance(by: .seconds(seconds) - .nanoseconds(1))
      let count = world.restarted.count
      world.timers.advance(by: .nanoseconds(1))
      #expect(world.restarted.count == count + 1)
      #expect(supervisor.histories[web]?.plan == nil)
    }
    #expect(world.restarted == Array(repeating: "web", count: 5))
    #expect(supervisor.histories[web]?.restarts == 5)
    #expect(world.lines.first == "web: restarts in 1 s: exited with status 4")
  }

  @Test func `A run that is longer than the longest pause makes the next pause the shortest`() {
    world.add("web", RestartRules(.always, backoff: Backoff(max: .seconds(8)), giveUp: nil))
    for _ in 0..<4 { world.run() }
    #expect(world.delay() == .seconds(8))
    world.run(for: .seconds(9))
    #expect(world.delay() == .seconds(1))
  }

  @Test func `Restarts end after give_up, and the worker's problem names the last failure`() {
    world.add("web", RestartRules(.always, giveUp: .init(restarts: 2, window: .seconds(600))))
    for _ in 0..<2 {
      world.run()
      world.timers.advance(by: .seconds(10))
    }
    world.run()
    #expect(supervisor.histories[web]?.plan == nil && world.timers.pending == [])
    let problem = supervisor.histories[web]?.problem
    #expect(problem?.code == "gave_up")
    #expect(problem?.text.hasPrefix("gave up after 2 restarts within 10 m") == true)
    #expect(problem?.text.contains("exited with status 4") == true)
    #expect(world.lines.last?.contains("gave up after 2 restarts") == true)
    // Restarts outside of the window don't count, and a new run has no problem.
    world.timers.advance(by: .seconds(700))
    world.launch()
    #expect(supervisor.histories[web]?.problem == nil)
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
    #expect(supervisor.histories[web]?.lastEnd == .init(succeeded: true, wasStopped: false))
    for cause in [
      RestartWorld.failure, .exited(.signaled(11)), .watchdog("liveness probe failed"),
      .failed("no such program"),
    ] {
      world.run("web", cause)
      #expect((world.delay() != nil) == afterFailure, "\(cause)")
      #expect(supervisor.histories[web]?.lastEnd == .init(succeeded: false, wasStopped: false))
    }
    // The operator's request ends it.
    world.run("web", .requested(.stop))
    #expect(supervisor.histories[web]?.plan == nil)
    #expect(supervisor.histories[web]?.lastEnd?.wasStopped == true)
  }

  @Test func `Workers terminated for memory are restarted one by one, by importance`() {
    world.add("less", importance: 10)
    world.add("most", importance: 90)
    world.add("also", importance: 10)
    for condition in [RestartRules.Condition.never, .onFailure] {
      world.add(condition.rawValue, RestartRules(condition, giveUp: nil))
    }
    world.setPressure(.critical)
    for name in ["less", "most", "also", "no", "on-failure"] {
      world.run(name, .pressure(.critical))
    }
    world.timers.advance(by: .seconds(600))
    #expect(world.restarted == [])
    let plan = RestartPlan.waitingForMemory(reason: "memory pressure was critical")
    #expect(supervisor.histories[WorkerID("less")]?.plan == plan)
    #expect(supervisor.histories[WorkerID("on-failure")]?.plan == nil)

    world.setPressure(.normal)
    supervisor.startFittingWorkers()
    #expect(
      ["most", "also", "less"].map { world.delay(of: $0) } == [
        .seconds(1), .seconds(2), .seconds(3),
      ])
    world.timers.advance(by: .seconds(3))
    #expect(world.restarted == ["most", "also", "less"])
  }

  @Test func `A worker terminated for memory isn't started if pressure rises in its pause`() {
    world.add()
    world.setPressure(.urgent)
    world.run("web", .pressure(.urgent))
    world.setPressure(.normal)
    supervisor.startFittingWorkers()
    world.setPressure(.warning)
    world.timers.advance(by: .seconds(5))
    #expect(world.restarted == [] && supervisor.histories[web]?.restarts == 0)
    #expect(
      supervisor.histories[web]?.plan == .waitingForMemory(reason: "memory pressure was urgent"))
    world.setPressure(.normal)
    supervisor.startFittingWorkers()
    world.timers.advance(by: .seconds(1))
    #expect(world.restarted == ["web"])
  }

  @Test func `Terminations for memory don't count for give_up, and have growing pauses`() {
    world.add("web", RestartRules(.always, giveUp: .init(restarts: 1, window: .seconds(600))))
    for seconds in [1, 2, 4] {
      // The pressure is normal again when the worker has ended.
      world.run("web", .pressure(.critical))
      #expect(world.delay() == .seconds(seconds))
    }
    world.run("web", for: .seconds(61), .pressure(.critical))
    #expect(world.delay() == .seconds(1))
    world.run()
    #expect(world.delay() == .seconds(1) && supervisor.histories[web]?.problem == nil)
  }

  @Test func `The operator's stop cancels the planned restart`() {
    for verb in [Request.Verb.stop, .terminate] {
      world.add()
      world.run()
      supervisor.operatorRequested(verb, web)
      #expect(supervisor.histories[web]?.plan == nil && world.timers.pending == [])
      world.setPressure(.critical)
      world.run("web", .pressure(.critical))
      supervisor.operatorRequested(verb, web)
      world.setPressure(.normal)
      supervisor.startFittingWorkers()
      #expect(supervisor.histories[web]?.plan == nil && world.restarted == [])
    }
  }

  @Test func `The operator's start resets the failures before it; other verbs change nothing`() {
    for verb in [Request.Verb.start, .restart] {
      world.add("web", RestartRules(.always, giveUp: .init(restarts: 2, window: .seconds(600))))
      world.run()
      world.timers.advance(by: .seconds(1))
      world.run()
      supervisor.operatorRequested(.wake, web)
      #expect(world.delay() == .seconds(2) && supervisor.histories[web]?.restarts == 1)
      supervisor.operatorRequested(verb, web)
      #expect(supervisor.histories[web]?.plan == nil && supervisor.histories[web]?.restarts == 0)
      world.run()
      #expect(world.delay() == .seconds(1) && supervisor.histories[web]?.problem == nil)
    }
  }

  @Test func `Only with unless-stopped a stop by the operator outlives the daemon`() {
    world.add()
    supervisor.operatorRequested(.stop, web)
    #expect(world.stopped == nil)
    world.setRules("web", .unlessStopped)
    supervisor.operatorRequested(.stop, web)
    #expect(world.stopped == "web\n")
    supervisor.operatorRequested(.start, web)
    #expect(world.stopped == "")
    // The file doesn't have it either if the rule has changed or the worker is no longer declared.
    supervisor.operatorRequested(.stop, web)
    world.setRules("web", .always)
    supervisor.didChangeTerms(of: web)
    #expect(world.stopped == "")
    world.setRules("web", .unlessStopped)
    supervisor.operatorRequested(.terminate, web)
    supervisor.forgetPlans(of: web)
    #expect(world.stopped == "")
    supervisor.operatorRequested(.stop, web)
    world.base.files.answer("No space left on device")
    #expect(world.lines.last?.hasSuffix("No space left on device") == true)
  }

  @Test func `A changed configuration cancels a planned restart only if it allows none`() {
    world.add()
    world.run()
    world.setRules("web", .onFailure)
    supervisor.didChangeTerms(of: web)
    #expect(world.delay() == .seconds(1))
    world.setRules("web", .never)
    supervisor.didChangeTerms(of: web)
    #expect(supervisor.histories[web]?.plan == nil && world.timers.pending == [])
  }

  @Test func `A daemon that is ending starts no workers, not even those with a planned restart`() {
    world.add()
    world.add("db")
    world.run()
    world.close()
    world.run("db")
    #expect(supervisor.histories[WorkerID("db")]?.plan == nil)
    world.timers.advance(by: .seconds(60))
    #expect(world.restarted == [])
    // The history is kept.
    #expect(supervisor.histories[WorkerID("db")]?.exits.count == 1)
  }

  @Test func `A removed worker isn't started, and another of its name has no history`() {
    world.add()
    var ends: [Answer?] = []
    world.run()
    world.launch()
    #expect(supervisor.watch(web) { ends.append($0) })
    world.end()
    #expect(ends.count == 1)
    supervisor.remove(web)
    #expect(world.timers.pending == [] && supervisor.histories[web]?.exits == nil)
    // Transitions of a removed worker are ignored.
    world.run()
    supervisor.operatorRequested(.stop, web)
    #expect(world.timers.pending == [] && supervisor.histories[web]?.exits == nil)
    world.add()
    #expect(supervisor.histories[web]?.exits == [] && supervisor.launchedAt(of: web) == .zero)
    world.run()
    #expect(world.delay() == .seconds(1))
  }

  @Test func `A worker that is removed while it runs isn't started after its end`() {
    world.add()
    world.launch()
    supervisor.forgetPlans(of: web)
    world.driver.send(.removed(web))
    world.end("web", .exited(.signaled(15)))
    #expect(world.state(of: "web") == nil)
    #expect(supervisor.histories[web]?.plan == nil && world.timers.pending == [])
  }

  @Test func `An external worker is never restarted, and its ends are recorded`() {
    world.add()
    world.workers[web]?.external = ExternalWorker(mayBeTerminated: true)
    world.run()
    #expect(supervisor.histories[web]?.plan == nil && supervisor.histories[web]?.exits.count == 1)
  }

  @Test func `A restart whose launch fails is logged, and the failure counts as an end`() {
    world.add()
    world.run()
    world.timers.advance(by: .seconds(1))
    world.end("web", .failed("no such program"))
    #expect(world.lines.contains("web could not be launched: no such program"), "\(world.lines)")
    #expect(world.delay() == .seconds(2) && supervisor.histories[web]?.exits.last?.status == nil)
  }
}
