import Policy
import Testing

@testable import Lifecycle

@Suite("Reports of a suspected leak")
struct LeakReportTests {
  private func world() -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = .seconds(3600)
    policy.hibernate.enabled = false
    policy.background.safePoint.afterLaunch = .zero
    var world = World(policy)
    world.add(web, size: .megabytes(20), canShed: true, in: .background)
    return world
  }

  /// Suspends and wakes the worker, which grows by `size` MB each time.
  private func leak(_ world: inout World, times: Int, by size: Int64 = 2) -> [String] {
    var reports: [String] = []
    for _ in 0..<times {
      world.sizes[web] = (world.sizes[web] ?? .zero) + .megabytes(size)
      world.obey(world.live(.seconds(60)))
      for case .leakSuspected(let worker, _) in world.obey(world.ask(.suspend, web)) {
        reports.append(worker.name)
      }
      world.obey(world.live(.seconds(60)))
      world.obey(world.ask(.wake, web))
    }
    return reports
  }

  @Test("A worker that grows at each suspension is reported once in each run of its program")
  func once() throws {
    var world = world()
    #expect(leak(&world, times: 30) == ["web"])
    let evidence = try #require(world.engine.snapshot(of: web)?.leak)
    #expect(evidence.footprint == .megabytes(80))
    #expect(world.engine.explanation(of: web)?.leak == evidence)
    world.obey(world.ask(.stop, web))
    #expect(world.engine.snapshot(of: web)?.leak == nil)
    world.sizes[web] = .megabytes(20)
    world.bring(web, to: .background)
    #expect(world.engine.snapshot(of: web)?.leak == nil)
    #expect(leak(&world, times: 11).isEmpty)
    #expect(leak(&world, times: 10) == ["web"])
  }

  @Test func `The evidence has what the last memory warning of the run left`() throws {
    var world = world()
    _ = leak(&world, times: 10)
    world.obey(world.ask(.warn, web))
    _ = leak(&world, times: 4)
    let evidence = try #require(world.engine.snapshot(of: web)?.leak)
    #expect(evidence.leftByWarning == .megabytes(40))
    #expect(evidence.sentence.hasSuffix("; the last memory warning left 40 MB"))
  }

  @Test func `Memory that the worker offers to be taken is no leak`() {
    var world = world()
    var all: [String] = []
    for _ in 0..<20 {
      all += leak(&world, times: 1)
      let offered = (world.sizes[web] ?? .zero) + .megabytes(2) - .megabytes(20)
      world.send(.purgeableOffered(web, offered))
    }
    #expect(all.isEmpty)
  }

  @Test func `The footprints of a run survive the engine, if the run does`() throws {
    var world = world()
    #expect(leak(&world, times: 8).isEmpty)
    var next = world.successor()
    var relaunched = next
    next.adopt(web, in: .background)
    next.obey(next.live(.seconds(1)))
    #expect(leak(&next, times: 3).isEmpty)
    #expect(leak(&next, times: 1) == ["web"])
    relaunched.add(web, size: .megabytes(20), in: .background)
    #expect(leak(&relaunched, times: 11).isEmpty)
  }

  @Test func `A worker that another program may have restarted meanwhile begins again`() {
    var world = world()
    #expect(leak(&world, times: 8).isEmpty)
    var next = world.successor()
    next.adopt(web, in: .background) { $0.mayBeTerminated = false }
    next.obey(next.live(.seconds(1)))
    #expect(leak(&next, times: 11).isEmpty)
  }
}
