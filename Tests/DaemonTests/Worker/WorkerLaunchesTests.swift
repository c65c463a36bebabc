import Glibc
import Lifecycle
import Linux
import Policy
import Testing

@testable import Daemon

@Suite("The daemon's components in a launch") struct WorkerLaunchesTests {
  private let world: AdapterWorld
  private let host: WorkerLaunches

  init() throws {
    world = try AdapterWorld()
    host = world.launches
  }

  @Test func `An unknown worker has no launch steps`() throws {
    #expect(host.steps(ofLaunching: WorkerID("web")) == nil)
    try world.add("web", .terminated)
    #expect(host.steps(ofLaunching: WorkerID("web")) != nil)
  }

  @Test func `A worker isn't launched beside a process of its own from an earlier daemon`() throws {
    let id = WorkerID("web")
    #expect(host.obstacle(toLaunching: id) == nil)
    world.services.records.save(try world.record()) { _ in }
    let obstacle = try #require(host.obstacle(toLaunching: id))
    #expect(obstacle.contains("`kill -9 \(getpid())`"))
    #expect(host.obstacle(toLaunching: WorkerID("api")) == nil)
  }

  @Test func `A record of another boot or an ended process prevents no launch`() throws {
    let id = WorkerID("web")
    world.services.records.save(try world.record { $0.bootID = "another" }) { _ in }
    #expect(host.obstacle(toLaunching: id) == nil)
    world.services.records.save(
      try world.record { $0.process = ProcessIdentity(pid: getpid(), startTime: 1) }
    ) { _ in }
    #expect(host.obstacle(toLaunching: id) == nil)
  }

  @Test func `A program that runs has a record before the engine knows it`() throws {
    let worker = try world.add("web", .launching)
    host.programDidStart(worker.id)
    world.services.records.drain()
    #expect(try world.services.records.store.load("web").state == "launching")
    #expect(worker.launched?.command == ["web", "--serve"])
    #expect(world.logged.contains("web: launched as pid \(getpid())"))
    #expect(world.notes.all == [])
  }

  @Test func `A program whose worker has no process is neither recorded nor logged`() throws {
    let worker = try world.add("web", .terminated)
    host.programDidStart(worker.id)
    host.programDidStart(WorkerID("unknown"))
    world.services.records.drain()
    #expect(!world.services.records.store.contains("web") && worker.launched == nil)
    #expect(world.logged == "")
  }

  @Test func `A failed launch removes a worker that was dropped meanwhile`() throws {
    let worker = try world.add("web", .terminated)
    host.launchDidFail(worker.id)
    #expect(world.workers[worker.id] === worker)
    world.driver.send(.removed(worker.id))
    host.launchDidFail(worker.id)
    host.launchDidFail(WorkerID("unknown"))
    #expect(world.workers[worker.id] == nil)
  }

  @Test func `A worker that can't be launched counts among the ended ones`() throws {
    for name in ["one", "two", "three"] {
      try world.add(name, .terminated, isDeclared: false)
      host.launchDidFail(WorkerID(name))
    }
    #expect(Set(world.workers.keys.map(\.name)) == ["two", "three"])
  }

  @Test func `When a worker runs, those that depend on it are started`() throws {
    let web = try world.add("web", .terminated) { $0.dependsOn = [Dependency("db", .started)] }.id
    let worker = try world.add("db", .terminated)
    world.starter.start(web) { _ in }
    worker.process = try .forTest("db")
    host.didLaunch(WorkerID("unknown"))
    #expect(world.asked == ["restart db"])
    host.didLaunch(worker.id)
    #expect(world.asked == ["restart db", "start web"])
  }
}
