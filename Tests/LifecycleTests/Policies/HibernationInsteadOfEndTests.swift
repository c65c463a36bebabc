import Lifecycle
import Policy
import Testing

@Suite("Hibernating a running worker instead of ending it")
struct HibernationInsteadOfEndTests {
  /// A world of workers of 20 MB on a host of 1,000 MB. `critical` is below 50 MB.
  private func world(
    _ states: [(WorkerID, WorkerState)], _ change: (inout LifecyclePolicy) -> Void = { _ in }
  ) -> World {
    var policy = LifecyclePolicy()
    policy.foreground.max = nil
    policy.background.suspendAfter = .seconds(3600)
    policy.hibernate.after = nil
    change(&policy)
    var world = World(policy)
    for (worker, state) in states {
      world.add(worker, size: .megabytes(20), in: state)
      world.send(.footprint(worker, world.size(worker)))
    }
    return world
  }

  /// The directives of the next reading, after the settling time.
  private func next(_ world: inout World, available: Int64) -> [Directive] {
    world.pass(.milliseconds(500))
    return world.obey(world.read(available: available))
  }

  @Test func `A running worker is suspended and hibernated at critical, the foreground last`() {
    var world = world([(web, .foreground), (mail, .background)])
    #expect(world.obey(world.read(available: 80)).deeds.isEmpty, "urgent would end no running one")
    #expect(world.obey(world.read(available: 30)).deeds == ["suspend mail", "hibernate mail"])
    #expect(next(&world, available: 40).deeds == ["suspend web", "hibernate web"])
    #expect(next(&world, available: 45).deeds.isEmpty)
    #expect(world.state(web) == .hibernated && world.state(mail) == .hibernated)
  }

  @Test("No more workers are hibernated than needed, and the next request wakes to the foreground")
  func wakes() {
    var world = world([(web, .foreground), (mail, .foreground)])
    let first = world.obey(world.read(available: 30))
    #expect(first.deeds == ["suspend mail", "hibernate mail"])
    #expect(next(&world, available: 60).deeds.isEmpty)
    #expect(world.state(web) == .foreground)
    world.obey(world.send(.wakeNeeded(mail, "a connection")))
    #expect(world.state(mail) == .foreground)
  }

  @Test("A worker that was taken from the foreground takes no other worker's place when it wakes")
  func roomInFront() {
    var world = world([(web, .foreground)]) { $0.foreground.max = 1 }
    world.obey(world.read(available: 30))
    #expect(world.state(web) == .hibernated)
    world.add(mail, size: .kilobytes(100), in: .foreground)
    world.obey(world.send(.wakeNeeded(web, "a connection")))
    #expect(world.state(web) == .background && world.state(mail) == .foreground)
  }

  @Test(
    "A worker that must not be suspended or hibernated is terminated as before",
    arguments: ["task", "hold", "never suspended", "not hibernated", "no rung", "refused"])
  func mustNot(_ reason: String) {
    var world = world([(web, .background)]) {
      if reason == "never suspended" { $0.background.suspendAfter = nil }
      if reason == "not hibernated" { $0.hibernate.enabled = false }
      if reason == "no rung" {
        $0.ladder = Ladder(warning: [], urgent: [], critical: [.terminate(.background)])
      }
    }
    switch reason {
    case "task": world.send(.taskBegan(web, task: "upload", limit: nil))
    case "hold": world.send(.hold(web, true))
    case "refused":
      world.ask(.hibernate, web)
      world.send(.suspended(web))
      world.send(.footprint(web, .megabytes(20)))
      world.send(.hibernateFailed(web, "it uses io_uring", permanent: true))
      world.obey(world.ask(.wake, web))
    default: break
    }
    #expect(world.obey(world.read(available: 30)).victims == ["web"])
  }

  @Test func `A worker that can be hibernated is, before another one of its rung is terminated`() {
    var world = world([(mail, .background), (maps, .background)])
    world.send(.taskBegan(mail, task: "upload", limit: nil))
    #expect(world.obey(world.read(available: 30)).deeds == ["suspend maps", "hibernate maps"])
    #expect(next(&world, available: 40).victims == ["mail"])
  }

  @Test func `If its hibernation fails, the worker is terminated`() {
    var world = world([(web, .foreground)])
    #expect(world.read(available: 30).deeds == ["suspend web"])
    world.send(.suspended(web))
    #expect(world.send(.footprint(web, .megabytes(20))).deeds == ["hibernate web"])
    world.send(.hibernateFailed(web, "no space left", permanent: false))
    #expect(next(&world, available: 30).victims == ["web"])
  }

  /// A world with a worker of 20 MB that was launched and announces its readiness.
  private func launching(_ change: (inout LifecyclePolicy) -> Void = { _ in }) -> World {
    var world = world([], change)
    world.add(web, size: .megabytes(20), announcesReadiness: true)
    world.ask(.start, web)
    world.send(.launched(web))
    world.send(.footprint(web, .megabytes(20)))
    return world
  }

  /// The reason for the worker's termination in the report.
  private func because(_ world: inout World) throws -> String {
    world.send(.exited(web, .signaled(9)))
    world.pass(.seconds(1))
    let report = world.read(available: 900).jetsamReports.first
    return try #require(report?.entries.first?.victimBecause)
  }

  @Test("A worker that is launching is waited for, and hibernated as soon as it is ready")
  func launchingIsAwaited() throws {
    var world = launching()
    #expect(world.read(available: 30).deeds.isEmpty)
    #expect(world.pass(.milliseconds(9_999)).victims.isEmpty)
    let moves = try #require(world.engine.explanation(of: web)).moves
    #expect(moves.contains { $0.to == .hibernated && $0.sentence.hasSuffix("instead of its end") })
    let deeds = world.obey(world.send(.ready(web))).deeds
    #expect(deeds == ["done", "suspend web", "hibernate web"])
  }

  @Test("A worker that isn't ready in ten seconds of a shortage is terminated, once in a run")
  func launchingTooLong() throws {
    var world = launching()
    world.read(available: 30)
    #expect(world.pass(.seconds(10)).victims == ["web"])
    #expect(try because(&world).hasSuffix("; it was not ready to be hibernated in 10 s"))
  }

  @Test("A launching worker is waited for only until half of the available memory is left")
  func launchingWhileMemoryFalls() throws {
    var world = launching()
    world.read(available: 30)
    #expect(world.read(available: 16).victims.isEmpty)
    #expect(world.read(available: 15).victims == ["web"])
    #expect(try because(&world).hasSuffix("was not waited for: memory fell further"))
  }

  @Test(
    "A launching worker that could not be hibernated either is terminated, and the report says why",
    arguments: [true, false])
  func starting(neverSuspended: Bool) throws {
    var world = launching {
      if neverSuspended { $0.background.suspendAfter = nil } else { $0.hibernate.enabled = false }
    }
    #expect(world.state(web) == .launching)
    #expect(world.read(available: 30).victims == ["web"])
    #expect(try because(&world).hasSuffix("; it can't be hibernated before it is ready"))
  }

  @Test func `A launching worker that is waited for costs no other worker its state meanwhile`() {
    var world = launching()
    world.add(mail, size: .megabytes(20), in: .foreground)
    world.send(.taskBegan(mail, task: "upload", limit: nil))
    world.send(.footprint(mail, .megabytes(20)))
    #expect(world.read(available: 30).victims.isEmpty)
    #expect(world.obey(world.send(.ready(web))).deeds.suffix(1) == ["hibernate web"])
    #expect(world.state(mail) == .foreground)
  }

  @Test func `If it can't be suspended, the worker is terminated`() {
    var world = world([(web, .background)])
    #expect(world.read(available: 30).deeds == ["suspend web"])
    world.send(.suspendFailed(web, "it doesn't stop"))
    #expect(next(&world, available: 30).victims == ["web"])
  }

  @Test("A worker that isn't suspended because it works by its own timers is hibernated, too")
  func staysAwake() {
    var world = world([(web, .background)]) { $0.trim.after = .seconds(100_000) }
    #expect(world.pass(.seconds(3600)).deeds == ["suspend web"])
    world.send(.staysAwake(web, "it has no clients and works by its own timer"))
    #expect(world.obey(world.read(available: 30)).deeds == ["suspend web", "hibernate web"])
  }

  @Test func `If it reaches no safe point in ten seconds, the worker is terminated`() {
    var world = world([(web, .background)]) { $0.background.safePoint.fileLocks = .seconds(60) }
    world.locks[web] = 1
    #expect(world.read(available: 30).deeds.isEmpty)
    #expect(world.pass(.milliseconds(9_999)).victims.isEmpty)
    world.pass(.milliseconds(1))
    #expect(next(&world, available: 30).victims == ["web"])
  }

  @Test func `A worker that is woken at once each time is terminated at the third time`() {
    var world = world([(web, .foreground)])
    var all: [Directive] = world.obey(world.read(available: 30))
    for _ in 0..<3 {
      all += world.obey(world.send(.wakeNeeded(web, "a connection")))
      all += next(&world, available: 30)
    }
    #expect(
      all.deeds == [
        "suspend web", "hibernate web", "resume web", "suspend web", "hibernate web", "resume web",
        "terminate web",
      ])
  }

  @Test func `A hibernation without effect is the last step for a minute`() {
    var world = world([(web, .foreground), (mail, .foreground)])
    #expect(world.obey(world.read(available: 30)).deeds == ["suspend mail", "hibernate mail"])
    #expect(next(&world, available: 30).brief == ["none at critical: noEffect"])
    #expect(world.obey(world.pass(.seconds(59))).deeds.isEmpty)
    #expect(world.obey(world.pass(.seconds(1))).deeds == ["suspend web", "hibernate web"])
  }

  @Test("At a level that the operator has set, running workers are hibernated one after the other")
  func setLevel() {
    var world = world([(web, .foreground), (mail, .background)])
    world.read(available: 900)
    var all = world.obey(world.send(.pressureSet(.critical, for: .seconds(30))))
    for _ in 0..<4 { all += next(&world, available: 900) }
    #expect(all.deeds == ["suspend mail", "hibernate mail", "suspend web", "hibernate web"])
  }

  @Test func `Shadow mode says that a running worker would have been hibernated, not terminated`() {
    var world = world([(web, .foreground)]) { $0.mode = .shadow }
    let directives = world.read(available: 30) + world.pass(.seconds(5)) + world.read(available: 30)
    let texts = directives.compactMap { directive in
      if case .wouldHave(_, let text) = directive { text } else { nil }
    }
    #expect(texts == ["web would have been hibernated: memory pressure was critical"])
  }

  @Test("`explain` names the hibernation instead of the end")
  func explained() throws {
    let world = world([(web, .foreground)])
    let moves = try #require(world.engine.explanation(of: web)).moves
    let move = try #require(moves.first { $0.code == "pressure" })
    #expect(move.to == .hibernated && move.sentence.hasSuffix("instead of its end"))
  }
}
