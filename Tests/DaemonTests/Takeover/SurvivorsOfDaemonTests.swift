import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("What a daemon does with the workers of an earlier one") struct SurvivorsOfDaemonTests {
  private let world: AdapterWorld
  private let host: SurvivorsOfDaemon

  init() throws {
    world = try AdapterWorld()
    host = SurvivorsOfDaemon(
      .init(
        services: world.services, state: world.state, driver: world.driver,
        workers: world.workers, bootID: AdapterWorld.bootID, environment: ["HOME": "/root"],
        recordWriter: world.recordWriter, learnedMemory: world.learnedMemory,
        snapshots: world.snapshots, restarts: world.restarts, conversations: world.conversations,
        planner: world.planner, processes: world.processes, keeperStarter: world.keeperStarter,
        watchdogs: world.senses.watchdogs))
  }

  private func unit(_ name: String = "web") throws -> WorkerUnit {
    try #require(world.workers[WorkerID(name)])
  }

  // MARK: its process

  @Test(
    "A worker that the configuration doesn't have is taken over as one of `run`, as it was recorded"
  )
  func undeclared() throws {
    try host.takeOver(
      try world.record {
        $0.command = ["serve", "-v"]
        $0.directory = "/srv"
        $0.importance = 40
        $0.asleepSince = 5
        $0.watchdog = 3_000_000_000
      })
    let runtime = try unit()
    #expect(!runtime.isDeclared && runtime.configuration.command == ["serve", "-v"])
    #expect(runtime.configuration.importance == 40 && runtime.environment == ["HOME": "/root"])
    #expect(runtime.process?.identity.pid == getpid() && runtime.exitWatch != nil)
    #expect(runtime.asleepSince == Instant(nanoseconds: 5))
    #expect(runtime.watchdogInterval == .seconds(3) && runtime.external == nil)
    #expect(runtime.sleep != nil && runtime.wakeWatch != nil && runtime.conversation != nil)
  }

  @Test("An importance that no configuration could have is limited to one that it could")
  func importance() throws {
    for (recorded, kept) in [(-5, 0), (1000, 100), (40, 40)] {
      try host.takeOver(try world.record("w\(kept)") { $0.importance = recorded })
      #expect(try unit("w\(kept)").configuration.importance == kept)
    }
  }

  @Test("A declared worker keeps its configuration, and is shown with what it was launched with")
  func declared() throws {
    let runtime = try world.add("web", .terminated)
    try host.takeOver(
      try world.record {
        $0.command = ["old"]
        $0.external = .mayNot
      })
    #expect(try unit() === runtime && runtime.isDeclared)
    #expect(runtime.configuration.command == ["web", "--serve"])
    #expect(runtime.launched?.command == ["old"])
    #expect(runtime.keysChangedSinceLaunch.contains("command"))
    #expect(runtime.external?.mayBeTerminated == false)
  }

  @Test("An adopted worker keeps the policy of its adoption, or is in shadow mode without it")
  func chosenPolicy() throws {
    try host.takeOver(
      try world.record {
        $0.external = .mayNot
        $0.policy = "server"
        $0.settings = ["hibernate.after=7s"]
      })
    let runtime = try unit()
    let policy = runtime.configuration.policy
    #expect(policy.name == "server" && policy.hibernate.after == .seconds(7))
    #expect(policy.mode == .enforce && runtime.external?.chosen?.name == "server")
    try host.takeOver(
      try world.record("db") {
        $0.external = .mayNot
        $0.policy = "removed"
      })
    #expect(try unit("db").configuration.policy.mode == .shadow)
  }

  @Test("A process that has ended can't be taken over")
  func ended() throws {
    let record = try world.record { $0.process = ProcessIdentity(pid: getpid(), startTime: 1) }
    #expect(host.life(of: record) == .hasEnded)
    #expect(throws: (any Error).self) { try host.takeOver(record) }
    #expect(world.workers.count == 0 && world.restarts.exits(of: WorkerID("web")) == nil)
    #expect(host.life(of: try world.record()) == .lives)
    #expect(host.life(of: try world.record { $0.bootID = "another" }) == .hasEnded)
  }

  @Test(
    "A declared worker that couldn't be taken over has nothing of the run that its record describes"
  )
  func notTakenOver() throws {
    let runtime = try world.add("web", .terminated)
    let path = world.scratch.path + "/web.worker"
    let record = try world.record {
      $0.process = ProcessIdentity(pid: getpid(), startTime: 1)
      $0.external = .mayNot
      $0.asleepSince = 5
      $0.watchdog = 3_000_000_000
      $0.workerSocket = path
    }
    #expect(throws: (any Error).self) { try host.takeOver(record) }
    #expect(try unit() === runtime && runtime.isDeclared)
    #expect(runtime.external == nil, "its next run is the daemon's own")
    #expect(runtime.asleepSince == nil && runtime.watchdogInterval == nil)
    #expect(runtime.conversation == nil && runtime.process == nil)
    world.services.socketFiles.drain(within: .seconds(60))
    #expect(isAbsent(path))
  }

  @Test("A worker whose cgroup can't be used isn't taken over by half, and keeps its image")
  func byHalf() throws {
    try world.scratch.write("state/images/web.image", "memory")
    let record = try world.record { $0.cgroupPath = "/no/such/group" }
    #expect(throws: (any Error).self) { try host.takeOver(record) }
    #expect(world.workers.count == 0)
    #expect(!isAbsent(world.state.image(of: "web")))
  }

  @Test("A worker that ended without a daemon leaves the note of its end, and no files")
  func forgotten() throws {
    let record = try world.record()
    world.services.records.save(record) { _ in }
    try world.scratch.write("state/images/web.image", "memory")
    try world.scratch.write("state/images/web.image.base", "memory")
    world.restarts.add(WorkerID("web"), exits: [])
    host.forget(record)
    world.services.records.drain()
    #expect(try listDirectory(world.state.images) == [])
    #expect(!world.services.records.store.contains("web"))
    let last = world.restarts.exits(of: WorkerID("web"))?.last
    #expect(last?.why == "ended while no daemon was running" && last?.status == .unknown)
  }

  @Test("Of images without a record, those stay whose processes live")
  func orphans() throws {
    let scratch = world.scratch
    try scratch.writeImage("state/images/lost.image", of: [.current(of: getpid())])
    try scratch.writeImage("state/images/lost.image.base", of: [.current(of: getpid())])
    try scratch.write("state/images/lost.image.partial", "")
    try scratch.writeImage("state/images/ended.image", of: [])
    try scratch.write("state/images/idle.image.base", "memory")
    host.removeOrphans()
    #expect(Set(try listDirectory(world.state.images)) == ["lost.image", "lost.image.base"])
  }

  // MARK: how it rests

  @Test("A worker that is recorded as hibernated, runs, and has no image is without its image")
  func withoutImage() throws {
    let record = try world.record("web", .hibernated)
    try host.takeOver(record)
    guard case .withoutImage(let path) = host.rest(of: record) else {
      Issue.record("\(host.rest(of: record))")
      return
    }
    #expect(path == world.state.image(of: "web"))
  }

  @Test("A worker that doesn't rest as its record says is in doubt: its memory is verified")
  func inDoubt() throws {
    try world.scratch.write("state/images/web.image", "damaged")
    for state in [WorkerState.hibernated, .suspended, .background, .resuming, .hibernating] {
      let record = try world.record("web", state)
      #expect(try isInDoubt(record), "not taken over")
      try host.takeOver(record)
      #expect(try isInDoubt(record), "\(state)")
      world.workers.removeAll()
    }
  }

  private func isInDoubt(_ record: WorkerRecord) throws -> Bool {
    if case .inDoubt = host.rest(of: record) { true } else { false }
  }

  @Test(
    "A suspended worker with an image, whole or partial, may be half hibernated: it is in doubt")
  func halfHibernated() throws {
    let record = try world.record("web", .suspended)
    try host.takeOver(record)
    #expect(try isInDoubt(record), "it runs")
    try world.scratch.write("state/images/web.image.partial", "half")
    #expect(try isInDoubt(record))
  }

  // MARK: operations on it

  @Test("Operations on a worker that isn't there any more report that later, once")
  func absent() throws {
    let record = try world.record()
    var outcomes: [String] = []
    host.watchInputs(of: record) { outcomes.append($0 == nil ? "no watch" : "a watch") }
    host.recover(record) { outcomes.append($0 == nil ? "no recovery" : "a recovery") }
    #expect(outcomes == [])
    try world.turn { outcomes.count == 2 }
    #expect(outcomes == ["no watch", "no recovery"])
    host.leaveAsleep(record, with: nil)
    host.staysAsleep(WorkerID("web"), with: nil)
    host.killUnverified(WorkerID("web"))
    host.isBack(WorkerID("web"))
    host.wakeForWhatWaits(WorkerID("web"))
    host.save(WorkerID("web"), .background)
    world.services.records.drain()
    #expect(!world.services.records.store.contains("web"))
  }

  @Test("A worker that stays asleep keeps its image, and its record names it")
  func asleep() throws {
    let record = try world.record("web", .hibernated)
    try host.takeOver(record)
    host.leaveAsleep(record, with: ImageOnDisk(path: "/images/web.image"))
    #expect(try unit().image?.path == "/images/web.image")
    host.save(WorkerID("web"), .hibernated)
    world.services.records.drain()
    let saved = try world.services.records.store.load("web")
    #expect(saved.state == "hibernated" && saved.imagePath == "/images/web.image")
  }

  @Test("Its connections are accepted when the engine knows it again, and lines wait until then")
  func connections() throws {
    let path = world.scratch.path + "/web.worker"
    try host.takeOver(try world.record { $0.workerSocket = path })
    let worker = try WorkersEnd(path)
    try world.settle()
    #expect(try unit().conversation?.connectionCount == nil)
    world.driver.send(.adopted(WorkerID("web"), try unit().profile, .background))
    host.isBack(WorkerID("web"))
    try world.turn { try unit().conversation?.connectionCount == 1 }
    #expect(try worker.hear().count == 1)
  }

  // MARK: what it was left

  @Test("Only a worker that is recorded as hibernated is certain to have its memory in an image")
  func expectations() throws {
    for state in [WorkerState.suspended, .resuming, .background] {
      guard case .unknown = ImageExpectation.of(try world.record("web", state)) else {
        Issue.record("\(state)")
        continue
      }
    }
    if case .hibernated = ImageExpectation.of(try world.record("web", .hibernated)) {
    } else {
      Issue.record("hibernated")
    }
  }
}
