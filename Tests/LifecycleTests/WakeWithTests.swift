import Lifecycle
import Policy
import Testing

private let app = WorkerID("app")
private let db = WorkerID("db")

@Suite("Workers that wake together (`wake_with`)")
struct WakeWithTests {
  /// A world in which `web` wakes `app`, and `app` wakes `db`. All are in this state.
  private func chain(
    _ state: WorkerState = .hibernated, back: [WorkerID] = [],
    _ change: (inout LifecyclePolicy) -> Void = { _ in }
  ) -> World {
    var policy = LifecyclePolicy()
    policy.foreground.max = nil
    change(&policy)
    var world = World(policy)
    for (worker, others) in [(web, [app]), (app, [db]), (db, back)] {
      world.add(worker)
      world.wake(others, with: worker)
      world.bring(worker, to: state)
    }
    return world
  }

  @Test(arguments: [WorkerState.suspended, .hibernated])
  func `A worker that wakes wakes its whole chain in the same step`(state: WorkerState) {
    var world = chain(state)
    let directives = world.send(.wakeNeeded(web, "a connection on port 80"))
    #expect(directives.deeds == ["resume web", "resume app", "resume db"])
    world.obey(directives)
    for worker in [app, db] {
      let snapshot = world.engine.snapshot(of: worker)
      #expect(snapshot?.state == .background)
      #expect(snapshot?.cause.sentence == "woken with web" && snapshot?.cause.code == "woken_with")
      #expect(snapshot?.lastUsed == world.now)
    }
  }

  @Test func `Each kind of wake wakes the chain`() {
    let wakes: [(inout World) -> [Directive]] = [
      { $0.ask(.wake, web) }, { $0.ask(.foreground, web) }, { $0.ask(.background, web) },
      { $0.send(.timerDue(web, "a time-out")) }, { $0.send(.wakeNeeded(web, "SIGTERM")) },
    ]
    for wake in wakes {
      var world = chain()
      #expect(wake(&world).deeds == ["resume web", "resume app", "resume db"])
    }
  }

  @Test func `A heartbeat of a worker, and its stop, wake no other worker`() {
    var world = chain(.hibernated) {
      $0.background.heartbeat = HeartbeatRules(
        every: .seconds(60), lasting: .seconds(1), whileHibernated: true)
    }
    world.send(.profileChanged(app, WorkerProfile(policy: LifecyclePolicy())))
    world.wake([db], with: app)
    world.send(.profileChanged(db, WorkerProfile(policy: LifecyclePolicy())))
    #expect(world.pass(.seconds(60)).deeds == ["resume web"])
    world = chain()
    #expect(world.ask(.stop, web).deeds == ["resume web"])
    #expect(world.state(app) == .hibernated && world.state(db) == .hibernated)
  }

  @Test func `Workers that wake each other in a circle wake together, and keep none awake`() {
    var world = chain(back: [web])
    world.obey(world.send(.wakeNeeded(db, "data")))
    #expect([web, app, db].allSatisfy { world.state($0) == .background })
    // Each worker falls asleep by its own policy, and stays asleep.
    world.live(.seconds(60))
    #expect([web, app, db].allSatisfy { world.state($0) == .hibernated })
    #expect(world.live(.seconds(86_400)).deeds.isEmpty)
    #expect(world.engine.wakesWith(app) == [db, web])
  }

  @Test("A worker that was woken with another wakes no others, and can be put to sleep again")
  func noEcho() {
    var world = chain(.suspended, back: [web])
    let first = world.send(.wakeNeeded(web, "data"))
    #expect(first.deeds.count == 3)
    world.send(.resumed(web, .milliseconds(1)))
    world.obey(world.ask(.suspend, web))
    // The other two become awake only now.
    for worker in [app, db] { #expect(world.send(.resumed(worker, .zero)).deeds.isEmpty) }
    #expect(world.state(web) == .suspended)
  }

  @Test("A worker that could wake only later wakes no worker that was put to sleep meanwhile")
  func lateEcho() {
    var world = chain(back: [web])
    world.obey(world.ask(.wake, db) + world.ask(.suspend, db))
    for worker in [web, app] { world.obey(world.ask(.hibernate, worker)) }
    world.ask(.hibernate, db)
    world.obey(world.send(.wakeNeeded(web, "data")))
    #expect(world.state(web) == .background && world.state(db) == .hibernating)
    world.obey(world.ask(.suspend, web))
    #expect(world.send(.hibernated(db, world.hibernation(db))).deeds == ["done", "resume db"])
    #expect(world.state(web) == .suspended)
  }

  @Test func `A worker that doesn't sleep isn't started, and passes the wake on`() {
    var world = chain()
    world.obey(world.ask(.stop, app))
    #expect(world.state(app) == .terminated)
    #expect(world.send(.wakeNeeded(web, "data")).deeds == ["resume web", "resume db"])
    world = chain()
    world.ask(.terminate, app)
    #expect(world.state(app) == .terminating)
    #expect(world.send(.wakeNeeded(web, "data")).deeds == ["resume web", "resume db"])
    #expect(world.state(app) == .terminating)
  }

  @Test("A worker that is falling asleep wakes once it sleeps", arguments: [true, false])
  func fallingAsleep(isHibernating: Bool) {
    var world = chain()
    world.obey(world.ask(.wake, db))
    world.obey(world.ask(isHibernating ? .suspend : .background, db))
    world.ask(isHibernating ? .hibernate : .suspend, db)
    #expect(world.state(db) == (isHibernating ? .hibernating : .suspending))
    #expect(world.send(.wakeNeeded(web, "data")).deeds == ["resume web", "resume app"])
    let asleep: Event = isHibernating ? .hibernated(db, world.hibernation(db)) : .suspended(db)
    // The request for its sleep is answered first.
    #expect(world.send(asleep).deeds == ["done", "resume db"])
    #expect(world.engine.snapshot(of: db)?.cause == .wokenWith(web, forTimer: false))
  }

  @Test("A failed wake with another worker isn't repeated before the next wake of that worker")
  func failure() {
    var world = chain()
    world.send(.wakeNeeded(web, "data"))
    for worker in [web, app] { world.send(.resumed(worker, .zero)) }
    world.send(.resumeFailed(db, "no memory", intact: true))
    #expect(world.pass(.seconds(5)).deeds.contains("resume db") == false)
    world.obey(world.ask(.hibernate, web))
    #expect(world.send(.wakeNeeded(web, "data")).deeds.contains("resume db"))
  }

  @Test(
    "A wake with another worker displaces no worker from the foreground, and traffic moves it there"
  )
  func foreground() {
    var world = chain(.hibernated) {
      $0.foreground = ForegroundRules(mode: .activity, max: 1, idleAfter: .seconds(60))
    }
    world.obey(world.send(.wakeNeeded(web, "data")))
    #expect(world.state(web) == .foreground)
    #expect(world.state(app) == .background && world.state(db) == .background)
    world.send(.activity(db))
    #expect(world.state(db) == .foreground)
  }

  @Test("A worker woken with another sleeps again by its own policy, not before its own grace")
  func grace() {
    var world = chain { $0.background.suspendAfter = .seconds(10) }
    world.live(.seconds(600))
    world.obey(world.send(.wakeNeeded(web, "data")))
    world.live(.milliseconds(9_900))
    #expect(world.state(db) == .background)
    world.live(.milliseconds(200))
    #expect(world.state(db) == .suspended)
  }

  @Test("Workers woken with one whose own timer is due sleep again when they are quiet, as it does")
  func timer() {
    var world = chain(.hibernated) {
      $0.foreground = ForegroundRules(mode: .activity, max: nil, idleAfter: .seconds(60))
      $0.background.suspendAfter = .seconds(30)
    }
    world.obey(world.send(.timerDue(web, "a time-out")))
    world.live(.seconds(1))
    world.send(.worked(db))
    world.live(.milliseconds(1_500))
    #expect(world.state(app) == .suspended && world.state(db) == .background)
    world.live(.seconds(1))
    #expect(world.state(db) == .suspended)
    // A client of the first worker has precedence over its timer.
    world = chain()
    world.ask(.wake, db)
    world.obey([.resume(db)])
    world.ask(.suspend, db)
    world.send(.timerDue(web, "a time-out"))
    world.obey([.resume(web)] + world.ask(.hibernate, web))
    world.send(.wakeNeeded(web, "data"))
    world.send(.suspended(db))
    #expect(world.engine.snapshot(of: db)?.cause == .wokenWith(web, forTimer: false))
  }

  @Test(
    "Memory pressure doesn't hold back a wake with another worker, as it holds back no other wake")
  func pressure() {
    var world = chain()
    world.obey(world.read(available: 60))
    #expect(world.engine.pressure != .normal)
    let sleepers = [web, app, db].filter { world.state($0) == .hibernated }
    #expect(
      world.send(.wakeNeeded(web, "data")).deeds.filter { $0.hasPrefix("resume") }
        == sleepers.map { "resume \($0)" })
  }

  @Test func `In shadow mode the imagined wakes of the chain are counted`() {
    var world = chain(.background) { $0.mode = .shadow }
    world.pass(.seconds(600))
    #expect([web, app, db].allSatisfy { world.engine.imaginesSleep(of: $0) })
    world.send(.activity(web))
    for worker in [web, app, db] {
      #expect(!world.engine.imaginesSleep(of: worker))
      #expect(world.engine.snapshot(of: worker)?.shadow?.wakes == 1)
    }
  }

  @Test("A changed `wake_with` applies to the next wake")
  func reload() {
    var world = chain()
    world.wake([db], with: web)
    #expect(world.send(.wakeNeeded(web, "data")).deeds == ["resume web", "resume db"])
    world = chain()
    world.wake([], with: web)
    #expect(world.send(.wakeNeeded(web, "data")).deeds == ["resume web"])
    world = chain()
    world.wake([WorkerID("gone"), web, db], with: web)
    #expect(world.send(.wakeNeeded(web, "data")).deeds == ["resume web", "resume db"])
  }

  @Test func `A worker that another engine leads isn't woken with others`() {
    var world = chain()
    let editor = WorkerID("editor")
    world.adopt(editor, in: .suspended) { $0.leader = "its wrapper, pid 1" }
    world.wake([editor], with: web)
    #expect(world.send(.wakeNeeded(web, "data")).deeds == ["resume web"])
  }

  @Test func `An explanation of a sleeping worker names the workers that it wakes with`() throws {
    let moves = try #require(chain().engine.explanation(of: db)).moves
    #expect(
      moves.filter { $0.code == "woken_with" }.map(\.sentence)
        == ["app wakes (`wake_with`)", "web wakes (`wake_with`)"])
  }
}

extension World {
  fileprivate mutating func wake(_ others: [WorkerID], with worker: WorkerID) {
    changeProfile(of: worker) { $0.wakeWith = others }
  }
}
