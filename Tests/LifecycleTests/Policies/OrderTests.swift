import Lifecycle
import Policy
import Testing

extension LifecyclePolicy {
  /// A policy with three levels: at the first all workers are warned, at the second the background
  /// is terminated, at the third the foreground.
  static var iphoneOS3: LifecyclePolicy {
    var policy = LifecyclePolicy(name: "iphone-os-3")
    policy.background.suspendAfter = nil
    policy.hibernate.enabled = false
    policy.ladder = Ladder(
      warning: [.warn], urgent: [.terminate(.background)],
      critical: [.terminate(.background), .terminate(.foreground)])
    return policy
  }

  static var server: LifecyclePolicy {
    var policy = LifecyclePolicy(name: "server")
    policy.foreground = ForegroundRules(mode: .activity, max: nil)
    policy.hibernate.maxFootprint = nil
    policy.terminate.order = [.band, .recency]
    policy.ladder = Ladder(
      warning: [.hibernate], urgent: [.hibernate, .warn],
      critical: [.hibernate, .terminate(.suspended), .terminate(.background)])
    return policy
  }
}

@Suite("The order of termination")
struct OrderTests {
  /// A world with two workers in each state that has victims. The `big` ones are larger, and were
  /// used more recently.
  private func world(_ policy: LifecyclePolicy) -> World {
    var policy = policy
    policy.foreground.max = nil
    policy.foreground.idleAfter = .seconds(9999)
    // Only pressure changes a worker's state here.
    policy.background.suspendAfter = nil
    policy.hibernate.after = nil
    var world = World(policy)
    for (state, name) in [
      (WorkerState.hibernated, "hibernated"), (.suspended, "suspended"),
      (.background, "background"), (.foreground, "foreground"),
    ] {
      for (kind, size) in [("small", Int64(17)), ("big", 40)] {
        let worker = WorkerID("\(kind)-\(name)")
        var workerPolicy = policy
        workerPolicy.hibernate.enabled = state == .hibernated
        workerPolicy.hibernate.maxFootprint = nil
        world.add(worker, size: .megabytes(size), policy: workerPolicy, in: state)
        world.pass(.seconds(1))
      }
    }
    return world
  }

  /// Continues the pressure until the ladder has nothing left to terminate; each termination helps
  /// a little. Returns the victims.
  private func victims(_ policy: LifecyclePolicy) -> [String] {
    var world = world(policy)
    var all: [String] = []
    for round in 0..<8 {
      all += world.obey(world.read(available: 10 + Int64(round) * 5)).victims
      all += world.obey(world.pass(policy.terminate.settle)).victims
    }
    return all
  }

  @Test(
    "Policy ios-5 terminates suspended workers by size, then the background, then the foreground")
  func ios5() {
    #expect(
      victims(LifecyclePolicy()) == [
        "big-suspended", "small-suspended", "big-background", "small-background",
        "big-foreground", "small-foreground",
      ])
  }

  @Test("Policy iphone-os-3 terminates the background, then the foreground, and no sleeping worker")
  func iphoneOS3() {
    #expect(
      victims(.iphoneOS3) == [
        "big-background", "small-background", "big-foreground", "small-foreground",
      ])
  }

  @Test("Policy server terminates the longest unused worker first, and never a foreground worker")
  func server() {
    #expect(
      victims(.server) == [
        "small-suspended", "big-suspended", "small-background", "big-background",
      ])
  }

  @Test("The order of termination lists every live worker, hibernated ones above the background")
  func everyLiveWorker() {
    let world = world(LifecyclePolicy())
    #expect(
      world.engine.terminationOrder().map(\.name) == [
        "big-suspended", "small-suspended", "big-background", "small-background",
        "small-hibernated", "big-hibernated", "big-foreground", "small-foreground",
      ])
    #expect(
      world.engine.terminationOrder().compactMap { world.engine.snapshot(of: $0)?.band }
        == [0, 0, 30, 30, 75, 75, 100, 100])
  }

  @Test func `Importance counts within the bands of a state, and not beyond them`() {
    for (state, bands) in [
      (WorkerState.suspended, [0, 14, 29]), (.background, [30, 44, 59]),
      (.hibernated, [75, 87, 99]), (.foreground, [100, 100, 100]), (.launching, [90, 90, 90]),
    ] {
      var measuredBands: [Int?] = []
      for importance in [0, 50, 100] {
        var world = World()
        world.add(web, importance: importance, in: state)
        measuredBands.append(world.engine.snapshot(of: web)?.band)
      }
      #expect(measuredBands == bands, "\(state)")
    }
  }

  @Test(arguments: [
    (WorkerState.suspending, 30), (.hibernating, 75), (.resuming, 75), (.terminating, 30),
  ])
  func `A worker between two states has the higher band`(_ state: WorkerState, _ band: Int) {
    var world = World()
    world.add(web, in: state)
    #expect(world.engine.snapshot(of: web)?.band == band)
  }

  @Test func `The order relaunch_cost puts the worker that launches fastest first`() {
    var policy = LifecyclePolicy()
    policy.terminate.order = [.relaunchCost]
    policy.foreground.max = nil
    var world = World(policy)
    for (name, seconds) in [("slow", Int64(9)), ("quick", 1), ("middling", 4)] {
      world.add(WorkerID(name), announcesReadiness: true)
      world.ask(.start, WorkerID(name))
      world.send(.launched(WorkerID(name)))
      world.pass(.seconds(seconds))
      world.send(.ready(WorkerID(name)))
    }
    #expect(world.engine.terminationOrder().map(\.name) == ["quick", "middling", "slow"])
    #expect(world.engine.snapshot(of: WorkerID("middling"))?.launchCost == .seconds(4))
  }
}
