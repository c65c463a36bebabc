import Lifecycle
import Policy
import Testing

@Suite("The machine's sleep") struct MachineSleepTests {
  /// Starts one worker for each kind of deadline, and lets some seconds pass. Then the machine
  /// sleeps for `time`. Returns what is done after that, with the second in which it is done.
  private func deeds(afterSleeping time: Duration) -> [String] {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = nil
    policy.terminate.grace = .seconds(10)
    policy.watchdog.launch = .seconds(20)
    var world = World(policy)
    let (starting, ending, asked) = (WorkerID("starting"), WorkerID("ending"), WorkerID("asked"))
    let (watched, busy, moving) = (WorkerID("watched"), WorkerID("busy"), WorkerID("moving"))
    let holding = WorkerID("holding")
    for worker in [ending, watched, busy, moving] { world.add(worker) }
    world.add(asked, canShed: true, canAnswer: true)
    for worker in [asked, watched, busy] { world.bring(worker, to: .background) }
    world.bring(moving, to: .hibernating)
    policy.background.suspendAfter = .seconds(1)
    policy.background.safePoint.hold = .seconds(40)
    world.add(holding, policy: policy, in: .background)
    world.send(.hold(holding, true))
    world.bring(ending, to: .terminating)
    world.add(starting, announcesReadiness: true)
    world.ask(.start, starting)
    world.send(.launched(starting))
    world.ask(.warn, asked)
    world.send(.watchdogInterval(watched, .seconds(5)))
    world.send(.taskBegan(busy, task: "save", limit: .seconds(7)))
    world.pass(.seconds(2))

    var deeds: [String] = []
    if time > .zero {
      world.now = world.now + time
      deeds += world.send(.machineSlept(time)).deeds
    }
    for second in 0..<120 { deeds += world.pass(.seconds(1)).deeds.map { "\(second) \($0)" } }
    return deeds
  }

  @Test func `It puts off every deadline that a worker has to meet, by its own length`() {
    let awake = deeds(afterSleeping: .zero)
    let kinds = [
      "kill ending", "finishShed asked", "terminate asked", "check watchdog watched",
      "expire busy save", "inspect moving", "suspend holding", "terminate starting",
    ]
    for kind in kinds {
      #expect(awake.contains { $0.hasSuffix(" " + kind) }, "\(kind) isn't tried")
    }
    #expect(deeds(afterSleeping: .seconds(3600)) == awake)
    #expect(deeds(afterSleeping: .milliseconds(500)) == awake)
  }

  @Test func `It counts where the question is for how long a worker hasn't been used`() {
    var world = World { $0.background.suspendAfter = .seconds(600) }
    world.add(web, in: .background)
    world.pass(.seconds(2))
    world.now = world.now + .seconds(3600)
    #expect(world.send(.machineSlept(.seconds(3600))).deeds == ["suspend web"])
  }

  @Test func `A shortage that began just before it has to last afterwards, by a new reading`() {
    var world = World(terminateAfter: .seconds(1)) { $0.hibernate.enabled = false }
    world.add(web, size: .megabytes(60), in: .suspended)
    #expect(world.read(available: 40).victims.isEmpty)
    world.pass(.milliseconds(500))
    world.now = world.now + .seconds(3600)
    #expect(world.send(.machineSlept(.seconds(3600))).victims.isEmpty)
    #expect(world.pass(.milliseconds(600)).victims.isEmpty)
    #expect(world.read(available: 40).victims == ["web"])
  }

  @Test func `Whether a termination just before it has helped is decided by a new reading`() {
    var world = World {
      $0.hibernate.enabled = false
      $0.terminate.settle = .seconds(1)
    }
    for worker in [web, mail] { world.add(worker, size: .megabytes(60), in: .suspended) }
    #expect(world.obey(world.read(available: 20)).victims.count == 1)
    world.pass(.milliseconds(500))
    world.now = world.now + .seconds(3600)
    var all = world.send(.machineSlept(.seconds(3600)))
    all += world.pass(.milliseconds(600))
    all += world.read(available: 900)
    all += world.pass(.seconds(60))
    #expect(all.victims.isEmpty)
    #expect(!all.brief.contains("none at critical: noEffect"))
  }

  /// A launch costs what passes from the start of the process to readiness.
  @Test func `What a launch costs is learned without it`() {
    var world = World()
    world.add(web, announcesReadiness: true)
    world.ask(.start, web)
    world.pass(.seconds(60))
    world.send(.launched(web))
    world.pass(.seconds(3))
    world.now = world.now + .seconds(3600)
    world.send(.machineSlept(.seconds(3600)))
    world.send(.ready(web))
    #expect(world.engine.snapshot(of: web)?.launchCost == .seconds(3))
  }
}
