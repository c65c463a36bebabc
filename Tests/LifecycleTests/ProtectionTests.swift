import Lifecycle
import Policy
import Testing

@Suite("Protection from termination for lack of memory")
struct ProtectionTests {
  /// A world in which `mail` is the largest worker, so that it would be the first victim of its
  /// state.
  private func world(
    mail policy: ((inout LifecyclePolicy) -> Void)? = nil, in state: WorkerState = .suspended
  ) -> World {
    var machine = LifecyclePolicy()
    machine.background.suspendAfter = nil
    machine.hibernate.enabled = false
    machine.foreground.max = nil
    var workerPolicy = machine
    policy?(&workerPolicy)
    var world = World(machine)
    world.add(mail, size: .megabytes(90), policy: workerPolicy)
    world.add(web, size: .megabytes(20))
    for worker in [mail, web] {
      world.bring(worker, to: state)
      world.send(.footprint(worker, world.size(worker)))
    }
    return world
  }

  private func left(_ directives: [Directive]) -> [String] {
    directives.brief.filter { $0.hasPrefix("left ") }
  }

  @Test(
    "A protected worker isn't terminated at any pressure level, and the others are",
    arguments: [WorkerState.suspended, .background, .foreground], [true, false])
  func spared(_ state: WorkerState, byPolicy: Bool) {
    var world = world(mail: { $0.terminate.forMemory = !byPolicy }, in: state)
    if !byPolicy { #expect(world.ask(.protect, mail).deeds == ["done"]) }
    var all = world.obey(world.read(available: 20))
    for _ in 0..<20 {
      all += world.live(.seconds(1))
      all += world.obey(world.read(available: 20))
    }
    #expect(all.victims == ["web"])
    #expect(world.state(mail) == state)
    #expect(left(all) == [#"left ["mail"] at critical"#])
  }

  @Test func `Protected workers that are left are reported once at each level of an episode`() {
    var world = world(mail: { $0.terminate.forMemory = false })
    world.ask(.protect, web)
    #expect(left(world.read(available: 80)) == [#"left ["mail", "web"] at urgent"#])
    for _ in 0..<10 {
      world.pass(.seconds(1))
      #expect(left(world.read(available: 80)).isEmpty)
    }
    #expect(left(world.read(available: 20)) == [#"left ["mail", "web"] at critical"#])
    // The level is normal again, and then memory is short for a second time.
    world.read(available: 900)
    world.pass(.seconds(60))
    #expect(left(world.read(available: 20)) == [#"left ["mail", "web"] at critical"#])
  }

  @Test("Protection by request ends with `unprotect`, and that of the policy stays")
  func byRequest() {
    var world = world()
    world.ask(.protect, mail)
    #expect(world.engine.snapshot(of: mail)?.protection == .request)
    world.ask(.unprotect, mail)
    #expect(world.engine.snapshot(of: mail)?.protection == nil)
    #expect(world.read(available: 20).victims == ["mail"])

    var other = self.world(mail: { $0.terminate.forMemory = false })
    other.ask(.unprotect, mail)
    #expect(other.engine.snapshot(of: mail)?.protection == .policy)
    #expect(
      other.answers[other.requests]?.first?.text
        == "mail is still protected by its policy (`terminate: never`)")
    #expect(other.read(available: 20).victims == ["web"])
  }

  @Test func `A protected worker ends on request, and keeps its protection for the next run`() {
    var world = world()
    world.ask(.protect, mail)
    world.obey(world.ask(.terminate, mail))
    #expect(world.state(mail) == .terminated)
    world.bring(mail, to: .suspended)
    #expect(world.engine.snapshot(of: mail)?.protection == .request)
    #expect(world.read(available: 20).victims == ["web"])
  }

  @Test func `A demoted, protected worker isn't terminated to make room on the disk`() {
    var world = world(mail: {
      $0.hibernate.enabled = true
      $0.hibernate.maxFootprint = nil
      $0.hibernate.demoteAfter = .seconds(60)
      $0.terminate.forMemory = false
    })
    world.obey(world.ask(.hibernate, mail))
    #expect(world.state(mail) == .hibernated)
    world.pass(.seconds(120))
    world.send(
      .disk(
        DiskReading(
          total: .gigabytes(1), free: .zero, images: .gigabytes(1), writtenToday: .zero)))
    #expect(world.read(available: 20).victims == ["web"])
    world.obey(world.live(.seconds(60)))
    #expect(world.state(mail) == .hibernated)
  }

  @Test func `A worker that another engine leads can be protected, too`() {
    var world = world()
    world.adopt(maps, in: .suspended) { $0.leader = "its wrapper, pid 1" }
    world.send(.footprint(maps, .megabytes(200)))
    #expect(world.ask(.protect, maps).deeds == ["done"])
    #expect(world.read(available: 20).victims == ["mail"])
  }

  @Test("The explanation, the order of termination and the report name the protection")
  func shown() throws {
    var world = world(mail: { $0.terminate.forMemory = false })
    let explanation = try #require(world.engine.explanation(of: mail))
    #expect(explanation.protection == .policy)
    #expect(!explanation.moves.contains { $0.code == "pressure" && $0.to == .terminating })
    let entry = world.engine.ranking().termination.first { $0.worker == mail }
    #expect(entry?.obstacles.map(\.code) == ["protected_by_policy"])
    #expect(entry?.obstacles.first?.key?.path == "terminate.for_memory" && entry?.level == nil)

    var all = world.obey(world.read(available: 20))
    all += world.live(.seconds(2))
    all += world.obey(world.read(available: 900))
    all += world.live(.seconds(30))
    let entries = try #require(all.jetsamReports.first).entries
    #expect(entries.first { $0.worker == mail }?.protection == .policy)
    #expect(entries.first { $0.worker == web }?.victimBecause != nil)
  }
}
