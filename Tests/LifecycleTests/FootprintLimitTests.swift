import Lifecycle
import Policy
import Testing

@Suite("Limits of a worker's footprint")
struct FootprintLimitTests {
  /// A world with `web` in the background, measured once a second. Nothing but its limits moves it.
  private func world(
    _ limits: FootprintLimits, canShed: Bool = true, in state: WorkerState = .background,
    change: (inout LifecyclePolicy) -> Void = { _ in }
  ) -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = .seconds(3600)
    policy.hibernate.maxFootprint = nil
    policy.hibernate.after = nil
    policy.background.safePoint.afterLaunch = .zero
    change(&policy)
    var world = World(policy)
    world.add(web, size: .megabytes(10), canShed: canShed, in: state)
    world.changeProfile(of: web) { $0.footprintLimits = limits }
    world.obey(world.live(.seconds(120)))
    return world
  }

  /// Measures this size for more than a minute. Returns what was decided meanwhile.
  @discardableResult
  private func measure(
    _ world: inout World, _ size: Int64, for seconds: Int, activity: Bool = false
  ) -> [Directive] {
    world.sizes[web] = .megabytes(size)
    var all: [Directive] = []
    for _ in 0..<seconds {
      if world.state(web)?.runs == true {
        all += world.obey(world.send(.footprint(web, .megabytes(size))))
        if activity { all += world.obey(world.send(.activity(web))) }
      }
      all += world.live(.seconds(1))
    }
    return all
  }

  private func reports(_ directives: [Directive]) -> [String] {
    directives.compactMap { directive in
      guard case .overLimit(let worker, let excess, let consequence) = directive else { return nil }
      return "\(worker): \(excess.sentence): \(consequence)"
    }
  }

  private func causes(_ directives: [Directive], to state: WorkerState) -> [String] {
    directives.compactMap { directive in
      guard case .transition(let step) = directive, step.to == state else { return nil }
      return step.cause.sentence
    }
  }

  @Test(
    "A worker over `warn` for long enough is asked once, and again only after it was well below")
  func warned() {
    var world = world(FootprintLimits(warn: .megabytes(30)))
    #expect(reports(measure(&world, 31, for: 29)).isEmpty)
    let all = measure(&world, 31, for: 60)
    #expect(
      reports(all) == [
        "web: footprint 31 MB over limits.footprint.warn 30 MB for 30 s: asked to free memory"
      ])
    #expect(all.deeds == ["shed web memoryWarning", "finishShed web"])
    // A footprint around the limit isn't reported again.
    #expect(reports(measure(&world, 29, for: 10) + measure(&world, 31, for: 60)).isEmpty)
    measure(&world, 26, for: 1)
    #expect(reports(measure(&world, 31, for: 60)).count == 1)
  }

  @Test("A spike that is shorter than `sustained_for` has no consequence")
  func spikes() {
    var world = world(
      FootprintLimits(warn: .megabytes(30), restart: .megabytes(50), sustainedFor: .seconds(5)))
    var all: [Directive] = []
    for _ in 0..<20 { all += measure(&world, 90, for: 4) + measure(&world, 20, for: 1) }
    #expect(reports(all).isEmpty && all.deeds.isEmpty)
  }

  @Test func `A worker that can't be asked is reported, with the key that would help`() {
    var world = world(FootprintLimits(warn: .megabytes(30)), canShed: false)
    let all = measure(&world, 31, for: 60)
    #expect(reports(all).map { $0.hasSuffix("configure `shed:`") } == [true])
    #expect(all.deeds.isEmpty)
  }

  @Test("A worker over `hibernate` is hibernated without its idle times, when it isn't in use")
  func hibernated() {
    var world = world(FootprintLimits(hibernate: .megabytes(30)))
    measure(&world, 31, for: 60, activity: true)
    #expect(world.state(web) == .background)
    let all = measure(&world, 31, for: 60)
    #expect(world.state(web) == .hibernated)
    #expect(
      causes(all, to: .hibernating).first?.hasPrefix(
        "footprint 31 MB over limits.footprint.hibernate 30 MB for ") == true)
  }

  @Test(
    "A worker over `hibernate` that has just left the foreground is hibernated after two seconds")
  func leavesFront() {
    var world = world(FootprintLimits(hibernate: .megabytes(30)), in: .foreground)
    measure(&world, 31, for: 60)
    world.obey(world.ask(.background, web))
    world.obey(world.live(.milliseconds(1900)))
    #expect(world.state(web) == .background)
    // No event comes: the deadline alone moves the worker.
    world.obey(world.live(.milliseconds(200)))
    #expect(world.state(web) == .hibernated)
  }

  @Test(
    "The policy's obstacles keep a worker over `hibernate` awake",
    arguments: ["foreground", "never", "task", "disabled"])
  func obstacles(_ obstacle: String) {
    var world = world(
      FootprintLimits(hibernate: .megabytes(30)),
      in: obstacle == "foreground" ? .foreground : .background
    ) {
      if obstacle == "never" { $0.background.suspendAfter = nil }
      if obstacle == "disabled" { $0.hibernate.enabled = false }
      $0.background.taskLimit = .seconds(3600)
    }
    if obstacle == "task" { world.send(.taskBegan(web, task: "save", limit: nil)) }
    let all = measure(&world, 31, for: 300)
    #expect(reports(all).count == 1)
    #expect(
      world.state(web)
        == (obstacle == "disabled"
          ? .suspended : obstacle == "foreground" ? .foreground : .background))
  }

  @Test(
    "An unused worker over `restart` is terminated gracefully, and launched again with the reason")
  func restarted() {
    var world = world(FootprintLimits(restart: .megabytes(30)))
    let all = measure(&world, 31, for: 40)
    let sentence = "footprint 31 MB over limits.footprint.restart 30 MB for 30 s"
    #expect(all.deeds == ["terminate web"])
    #expect(causes(all, to: .terminated) == [sentence])
    let launch = world.obey(world.ask(.restart, web))
    #expect(causes(launch, to: .launching) == ["restarted: \(sentence)"])
    let snapshot = world.engine.snapshot(of: web)
    #expect(snapshot?.cause.sentence == "restarted: \(sentence)")
    #expect(snapshot?.footprintRestarts?.count == 1)
    // A start on request is no restart for the footprint.
    world.obey(world.ask(.stop, web))
    #expect(causes(world.obey(world.ask(.start, web)), to: .launching) == ["started on request"])
  }

  @Test func `A restart waits while the worker is in use, and at most five minutes`() {
    var world = world(FootprintLimits(restart: .megabytes(30)), in: .foreground)
    #expect(measure(&world, 31, for: 30 + 298, activity: true).deeds.isEmpty)
    #expect(world.state(web) == .foreground)
    #expect(measure(&world, 31, for: 5, activity: true).deeds == ["terminate web"])
  }

  @Test("A worker that starts over `restart` is restarted ever less often")
  func backOff() {
    var world = world(FootprintLimits(restart: .megabytes(30), sustainedFor: .seconds(2)))
    var ends: [Int64] = []
    world.sizes[web] = .megabytes(90)
    for _ in 0..<3600 {
      if world.state(web) == .terminated {
        ends.append(world.now.nanoseconds / 1_000_000_000)
        world.obey(world.ask(.restart, web))
      }
      measure(&world, 90, for: 1)
    }
    let gaps = zip(ends.dropFirst(), ends).map { $0 - $1 }
    #expect(gaps.count == 6, "\(gaps)")
    #expect(gaps.allSatisfy { $0 >= 2 }, "\(gaps)")
    #expect(zip(gaps.dropFirst(2), gaps.dropFirst()).allSatisfy { $0 > $1 }, "\(gaps)")
  }

  @Test("A worker that grows over `restart` later is restarted each time")
  func growing() {
    var world = world(FootprintLimits(restart: .megabytes(30), sustainedFor: .seconds(2)))
    var count = 0
    for _ in 0..<20 {
      measure(&world, 10, for: 90)
      measure(&world, 40, for: 5)
      if world.state(web) == .terminated { count += 1 }
      world.obey(world.ask(.restart, web))
    }
    #expect(count == 20)
  }

  @Test func `A worker that another program supervises isn't restarted for its footprint`() {
    var world = world(FootprintLimits(restart: .megabytes(30)))
    world.changeProfile(of: web) { $0.mayBeTerminated = false }
    let all = measure(&world, 31, for: 600)
    #expect(reports(all).count == 1 && all.deeds.isEmpty)
  }

  @Test func `Shadow mode only reports what the limits would have done`() {
    var world = world(
      FootprintLimits(warn: .megabytes(20), restart: .megabytes(30)), in: .foreground
    ) { $0.mode = .shadow }
    let all = measure(&world, 31, for: 600)
    #expect(all.deeds.isEmpty && reports(all).isEmpty)
    #expect(all.brief.filter { $0.hasPrefix("wouldHave") }.count == 2)
  }

  @Test func `A change of the limits applies at once, and removed limits have no effect`() {
    var world = world(FootprintLimits(restart: .megabytes(100)))
    measure(&world, 50, for: 60)
    let lower = FootprintLimits(restart: .megabytes(40))
    world.changeProfile(of: web) { $0.footprintLimits = lower }
    world.changeProfile(of: web) { $0.footprintLimits = nil }
    #expect(measure(&world, 50, for: 60).deeds.isEmpty)
    world.changeProfile(of: web) { $0.footprintLimits = lower }
    // The deadline needs no other measurement.
    #expect(world.live(.seconds(31)).deeds == ["terminate web"])
  }

  @Test func `The explanation says when a limit moves the worker`() throws {
    var world = world(FootprintLimits(restart: .megabytes(30)))
    let calm = try #require(
      world.engine.explanation(of: web)?.moves.first { $0.code == "footprint_limit" })
    #expect(calm.sentence == "its footprint is over limits.footprint.restart, 30 MB, for 30 s")
    #expect(calm.after == nil)
    measure(&world, 31, for: 10)
    let move = try #require(
      world.engine.explanation(of: web, at: world.now)?.moves.first { $0.code == "footprint_limit" }
    )
    #expect(move.after == .seconds(20) && move.key?.path == "limits.footprint.restart")
  }
}
