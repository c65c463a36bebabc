import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Launching a worker") struct WorkerLauncherTests {
  private let world = LaunchWorld()

  /// Checks that nothing is in progress any more: no timer, no launch, no process.
  private func expectNothingLeft(_ launch: FakeLaunch) {
    #expect(launch.made.isEmpty && launch.pid == nil)
    #expect(!world.workers.launching.contains(world.id) && world.launcher.pids.isEmpty)
    #expect(world.timers.pending.isEmpty)
  }

  @Test func `A launch performs its steps in order, and reports to the engine once`() throws {
    let launch = try #require(world.start())
    for (index, step) in LaunchStep.allCases.enumerated() {
      #expect(launch.performed == Array(LaunchStep.allCases[...index]))
      #expect(world.events.isEmpty && world.workers.launching.contains(world.id))
      launch.answer(step)
    }
    #expect(world.events == ["launched"] && world.calls == ["runs", "launched"])
    #expect(world.state == .foreground && launch.undoCount == 0)
    #expect(!world.workers.launching.contains(world.id) && world.timers.pending.isEmpty)
  }

  @Test func `Steps of a launch that end at once have the same effect`() throws {
    world.next = {
      let launch = FakeLaunch([.terms, .fork, .program])
      launch.succeedsAtOnce = true
      return launch
    }
    let launch = try #require(world.start())
    #expect(launch.performed == [.terms, .fork, .program])
    #expect(world.events == ["launched"] && world.timers.pending.isEmpty)
  }

  @Test(arguments: LaunchStep.allCases)
  func `A step that fails ends the launch, with the reason`(step: LaunchStep) throws {
    let launch = try #require(world.start())
    launch.succeed(until: step)
    launch.answer(step, "no \(step)")
    #expect(launch.performed.last == step && launch.undoCount == 1)
    #expect(world.events.isEmpty && world.workers.launching.contains(world.id), "something is left")
    launch.finishUndoing()
    #expect(world.events == ["failed: no \(step)"] && world.calls == ["failed"])
    #expect(world.state == .terminated && world.answers.map(\.code) == [.failed])
    expectNothingLeft(launch)
  }

  @Test(arguments: LaunchStep.allCases)
  func `A step whose outcome is lost ends the launch at its deadline`(step: LaunchStep) throws {
    let launch = try #require(world.start())
    launch.succeed(until: step)
    world.timers.advance(by: WorkerLauncher.stepTimeout)
    #expect(launch.undoCount == 0, "the step itself reports what it waits for")
    world.timers.advance(by: WorkerLauncher.lossTimeout)
    #expect(launch.undoCount == 1)
    launch.finishUndoing()
    #expect(world.events == ["failed: no outcome of its step `\(step)`"])
    expectNothingLeft(launch)
  }

  @Test func `Each step of a launch has its own deadline`() throws {
    let launch = try #require(world.start())
    for step in LaunchStep.allCases {
      world.timers.advance(by: WorkerLauncher.stepTimeout)
      launch.answer(step)
    }
    #expect(world.events == ["launched"])
  }

  @Test("An outcome of a launch step that comes twice counts once", arguments: LaunchStep.allCases)
  func twice(step: LaunchStep) throws {
    let launch = try #require(world.start())
    launch.succeed(until: step)
    launch.answer(step)
    let performed = launch.performed
    launch.answer(step)
    launch.answer(step, "no \(step)")
    #expect(launch.performed == performed && launch.undoCount == 0)
    for later in LaunchStep.allCases.drop(while: { $0 != step }).dropFirst() {
      launch.answer(later)
    }
    #expect(world.events == ["launched"] && world.calls == ["runs", "launched"])
  }

  @Test(arguments: LaunchStep.allCases, [nil, "too late"])
  func `A late outcome of a launch changes nothing`(step: LaunchStep, refusal: String?) throws {
    let launch = try #require(world.start())
    launch.succeed(until: step)
    world.timers.advance(by: WorkerLauncher.lossTimeout)
    launch.answer(step, refusal)
    #expect(launch.performed.last == step && launch.undoCount == 1 && world.events.isEmpty)
    for _ in 1...2 { launch.finishUndoing() }
    launch.answer(step, refusal)
    #expect(world.events.count == 1 && launch.undoCount == 1 && world.calls == ["failed"])
    expectNothingLeft(launch)
  }

  @Test(arguments: LaunchStep.allCases)
  func `An outcome of an earlier launch has no effect on the next one`(step: LaunchStep) throws {
    let first = try #require(world.start())
    first.succeed(until: step)
    world.timers.advance(by: WorkerLauncher.lossTimeout)
    first.finishUndoing()
    let second = try #require(world.start())
    second.succeed(until: step)
    let performed = second.performed
    first.answer(step)
    first.finishUndoing()
    #expect(second.performed == performed && second.undoCount == 0)
    #expect(world.state == .launching && world.events.count == 1)
  }

  @Test(arguments: LaunchStep.allCases)
  func `A worker that is removed between two steps leaves nothing`(step: LaunchStep) throws {
    let launch = try #require(world.start())
    launch.succeed(until: step)
    (launch.isWanted, world.isRemoved) = (false, true)
    launch.answer(step)
    #expect(launch.performed.last == step && launch.undoCount == 1)
    launch.finishUndoing()
    #expect(world.events.isEmpty && world.calls.isEmpty)
    expectNothingLeft(launch)
  }

  @Test(arguments: LaunchStep.allCases, [nil, "no file system"])
  func `A launch of a removed worker ends, and then a new worker of its name is launched`(
    step: LaunchStep, refusal: String?
  ) throws {
    let first = try #require(world.start())
    first.succeed(until: step)
    // The start of another worker with the name is requested.
    first.isWanted = false
    world.launcher.launch(world.id)
    first.answer(step, refusal)
    #expect(world.launches.count == 1, "something of the first launch is left")
    first.finishUndoing()
    #expect(world.events.isEmpty && world.calls.isEmpty, "the new worker hasn't failed")
    let second = try #require(world.launches.dropFirst().first)
    for step in LaunchStep.allCases { second.answer(step) }
    #expect(world.events == ["launched"] && world.launches.count == 2)
  }

  @Test(arguments: LaunchStep.allCases)
  func `A worker that is stopped during its launch is ended when it runs`(step: LaunchStep) throws {
    let launch = try #require(world.start())
    launch.succeed(until: step)
    world.request(.stop)
    for later in LaunchStep.allCases.drop(while: { $0 != step }) { launch.answer(later) }
    #expect(world.events == ["launched"] && world.state == .terminating)
    #expect(world.directives.contains(.terminate(world.id)))
  }

  @Test func `A worker that is stopped during a launch that fails has ended`() throws {
    let launch = try #require(world.start())
    world.request(.stop)
    launch.answer(.terms, "no such user")
    launch.finishUndoing()
    #expect(world.state == .terminated && world.answers.map(\.code).contains(.done))
    expectNothingLeft(launch)
  }

  @Test func `A launch that couldn't be undone is logged, and another may follow`() throws {
    let launch = try #require(world.start())
    launch.answer(.terms, "no such user")
    #expect(world.start() == nil, "the first launch hasn't ended")
    world.timers.advance(by: WorkerLauncher.undoTimeout)
    #expect(world.events == ["failed: no such user"])
    #expect(world.lines == ["can't undo its launch within 30 s"])
    let second = try #require(world.start())
    launch.finishUndoing()
    #expect(world.events.count == 1 && world.workers.launching.contains(world.id))
    for step in LaunchStep.allCases { second.answer(step) }
    #expect(world.events.last == "launched")
  }

  @Test func `A launch that can't begin fails without a step`() {
    world.obstacle = "an earlier process is still there"
    world.start()
    #expect(world.events == ["failed: an earlier process is still there"])
    #expect(world.launches.allSatisfy { $0.performed.isEmpty && $0.undoCount == 0 })
    #expect(world.timers.pending.isEmpty)
  }

  @Test(arguments: [true, false])
  func `A launch may wait until another worker is ready or has ended`(becomesReady: Bool) throws {
    let world = LaunchWorld(launchesAtOnce: 1)
    world.driver.send(
      .added(
        world.slow,
        WorkerProfile(policy: LifecyclePolicy(name: "test"), announcesReadiness: true)))
    world.driver.request(.start, world.slow) { _ in }
    let launch = try #require(world.start())
    let first = try #require(world.launches.first)
    for step in LaunchStep.allCases { first.answer(step) }
    #expect(world.driver.state.state(of: world.slow) == .launching)
    world.timers.advance(by: .seconds(1))
    #expect(launch.performed.isEmpty, "the first one isn't ready")
    world.driver.send(becomesReady ? .ready(world.slow) : .exited(world.slow, .exited(1)))
    #expect(launch.performed == [LaunchStep.allCases[0]])
  }

  @Test func `A worker that doesn't exist isn't launched`() {
    world.launcher.launch(WorkerID("other"))
    #expect(world.launches.isEmpty && world.events.isEmpty)
  }

  @Test func `A second directive during a launch gets the first one's outcome`() throws {
    let launch = try #require(world.start())
    world.launcher.launch(world.id)
    #expect(world.launches.count == 1)
    for step in LaunchStep.allCases { launch.answer(step) }
    #expect(world.events == ["launched"])
  }

  @Test func `The child of a launch under way is known, and not reaped as an orphan`() throws {
    let launch = try #require(world.start())
    #expect(world.launcher.pids.isEmpty)
    launch.succeed(until: .program)
    #expect(world.launcher.pids == [4711])
    launch.answer(.program)
    #expect(world.launcher.pids.isEmpty)
  }
}
