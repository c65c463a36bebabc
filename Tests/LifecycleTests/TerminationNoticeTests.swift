import Lifecycle
import Policy
import Testing

@Suite("A notice before a termination for lack of memory")
struct TerminationNoticeTests {
  /// A world in which `mail` is the first victim and gets a notice of 5 s. `web` is the second, and
  /// gets none.
  private func world(in state: WorkerState = .suspended) -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = nil
    policy.hibernate.enabled = false
    policy.foreground.max = nil
    policy.pressure.clearAfter = .seconds(1)
    var asking = policy
    asking.terminate.ask = .seconds(5)
    var world = World(policy)
    world.add(mail, size: .megabytes(90), policy: asking)
    world.add(web, size: .megabytes(20))
    for worker in [mail, web] {
      world.bring(worker, to: state)
      world.send(.footprint(worker, world.size(worker)))
    }
    return world
  }

  private func notices(_ directives: [Directive]) -> [String] {
    directives.compactMap { directive in
      switch directive {
      case .willTerminate(let worker, let notice):
        "\(worker) \(notice.sentence(of: worker, at: notice.asked))"
      case .willNotTerminate(let worker, let reason): "\(worker): \(reason)"
      default: nil
      }
    }
  }

  @Test func `The first victim gets a notice, and is terminated when no veto came in its time`() {
    var world = world()
    let first = world.obey(world.read(available: 80))
    #expect(first.victims.isEmpty)
    #expect(
      notices(first) == [
        "mail will be terminated in 5 s for lack of memory: lowest band (0), largest footprint "
          + "(90 MB) among suspended workers; `dormouse protect mail` keeps it"
      ])
    #expect(world.engine.snapshot(of: mail)?.notice?.until == world.now + .seconds(5))
    #expect(world.live(.milliseconds(4999)).victims.isEmpty)
    #expect(world.live(.milliseconds(2)).victims == ["mail"])
  }

  @Test func `A veto keeps the worker, and the ladder takes the next one at once`() {
    var world = world()
    world.obey(world.read(available: 80))
    world.pass(.seconds(2))
    let answer = world.obey(world.ask(.protect, mail))
    #expect(notices(answer) == ["mail: vetoed: protected on request (`dormouse protect`)"])
    #expect(answer.victims == ["web"])
    #expect(world.state(mail) == .suspended)
    #expect(world.engine.snapshot(of: mail)?.notice == nil)
  }

  @Test(
    "The ladder doesn't wait when the pressure rises by a level, or half of the memory is taken",
    arguments: [(80, 30), (49, 24)] as [(Int64, Int64)])
  func worse(_ first: Int64, _ then: Int64) {
    var world = world()
    #expect(world.obey(world.read(available: first)).victims.isEmpty)
    world.pass(.seconds(1))
    #expect(world.obey(world.read(available: then)).victims.first == "mail")
  }

  @Test(
    "The notice is withdrawn when the pressure is over, and the next shortage gives another one")
  func recovered() {
    var world = world()
    world.obey(world.read(available: 80))
    var all = world.obey(world.read(available: 900))
    all += world.live(.seconds(2))
    #expect(notices(all) == ["mail: memory pressure fell to normal"])
    all = world.live(.seconds(60))
    #expect(all.victims.isEmpty)
    #expect(notices(world.obey(world.read(available: 80))).count == 1)
    #expect(world.live(.seconds(6)).victims == ["mail"])
  }

  @Test func `The notice is withdrawn when the worker is used again`() {
    var world = world()
    world.obey(world.read(available: 80))
    let all = world.obey(world.ask(.wake, mail)) + world.obey(world.ask(.foreground, mail))
    #expect(notices(all).first?.hasPrefix("mail: it is in the ") == true, "\(notices(all))")
    #expect(world.engine.snapshot(of: mail)?.notice == nil)
  }

  @Test func `The report says that the worker was asked`() throws {
    var world = world()
    var all = world.obey(world.read(available: 80))
    all += world.live(.seconds(6))
    all += world.obey(world.read(available: 900))
    all += world.live(.seconds(5))
    let entry = try #require(all.jetsamReports.first?.entries.first { $0.worker == mail })
    #expect(entry.victimBecause?.hasSuffix("; asked, no veto in 5 s") == true)
  }

  @Test func `A request ends the worker without a notice`() {
    var world = world()
    let all = world.obey(world.ask(.terminate, mail))
    #expect(notices(all).isEmpty && world.state(mail) == .terminated)
  }
}
