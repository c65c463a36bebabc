import Lifecycle
import Policy
import Testing

@Suite("Shadow mode")
struct ShadowTests {
  private func world() -> World {
    World { $0.mode = .shadow }
  }

  @Test func `Shadow mode reports once what the policy would have done, and does nothing`() {
    var world = world()
    world.add(web, in: .background)
    let all = world.pass(.seconds(3600))
    #expect(
      all == [
        .wouldHave(web, "web would have been suspended: in the background for 10 s"),
        .wouldHave(web, "web would have been hibernated: suspended for 30 s"),
      ])
  }

  @Test func `Shadow mode carries out requests`() {
    var world = world()
    world.add(web, in: .hibernated)
    #expect(world.state(web) == .hibernated)
    world.obey(world.ask(.stop, web))
    #expect(world.state(web) == .terminated)
  }

  @Test func `Shadow mode would have terminated no more workers than needed`() {
    var world = world()
    for number in 0..<4 {
      let worker = WorkerID("w\(number)")
      world.add(worker, size: .megabytes(30), in: .suspended)
    }
    var all: [Directive] = []
    for _ in 0..<20 {
      all += world.read(available: 10)
      all += world.pass(.milliseconds(500))
    }
    #expect(all.deeds.isEmpty)
    #expect(all.victims.isEmpty)
    let spared = all.compactMap { directive in
      if case .wouldHave(let worker, _) = directive { worker.name } else { nil }
    }
    #expect(spared == ["w0", "w1"], "10 + 30 + 30 MB are more than 5% of 1,000 MB")
  }

  @Test func `Shadow mode of one worker protects only that worker`() {
    var policy = LifecyclePolicy()
    policy.mode = .shadow
    var world = World()
    world.add(web, size: .megabytes(60), policy: policy)
    world.add(mail, size: .megabytes(40))
    world.bring(web, to: .suspended)
    world.bring(mail, to: .suspended)
    let all = world.read(available: 40)
    #expect(all.victims == ["mail"])
    #expect(all.brief.contains("wouldHave web"))
  }
}
