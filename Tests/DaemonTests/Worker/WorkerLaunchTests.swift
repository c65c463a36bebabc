import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import TestSupport
import Testing

@testable import Daemon

extension AdapterWorld {
  var launches: WorkerLaunches {
    WorkerLaunches(
      services: services, recordWriter: recordWriter, conversations: conversations,
      processes: processes, ends: ends)
  }
}

@Suite("The steps of one launch") struct WorkerLaunchTests {
  private let world: AdapterWorld

  init() throws { world = try AdapterWorld() }

  private func launch(
    _ change: (inout WorkerConfiguration) -> Void = { _ in }
  ) throws -> (WorkerUnit, WorkerLaunch) {
    let worker = try world.add("web", .terminated, change)
    return (worker, WorkerLaunch(worker, world.launches))
  }

  /// The outcome of one step; nil: it has succeeded.
  private func perform(_ step: LaunchStep, _ launch: WorkerLaunch) throws -> String? {
    var outcomes: [String?] = []
    launch.perform(step, within: .seconds(60)) { outcomes.append($0) }
    try world.turn { !outcomes.isEmpty }
    try world.finishJobs()
    #expect(outcomes.count == 1)
    return outcomes[0]
  }

  @Test func `A wrapped program has no sockets and no channels of the daemon`() throws {
    let worker = try world.add("web", .terminated)
    #expect(WorkerLaunch(worker, world.launches).steps == LaunchStep.allCases)
    let wrapper = try AdapterWorld()
    wrapper.program = TestProgram()
    let program = try wrapper.add("web", .terminated)
    #expect(WorkerLaunch(program, wrapper.launches).steps == [.terms, .fork, .program])
  }

  @Test func `A launch is wanted only for the worker that is in the registry`() throws {
    let (worker, launch) = try launch()
    #expect(launch.isWanted)
    try world.add("web", .terminated)
    #expect(!launch.isWanted)
    world.workers[worker.id] = nil
    #expect(!launch.isWanted && launch.pid == nil)
  }

  @Test func `A user that doesn't exist ends the launch, with the name of the user`() throws {
    let (_, launch) = try launch { $0.user = "no-such-user-here" }
    #expect(try perform(.terms, launch)?.contains("no-such-user-here") == true)
  }

  @Test func `A memory limit that can't be enforced is reported, and prevents nothing`() throws {
    let (_, launch) = try launch { $0.limits.memory = .megabytes(100) }
    #expect(try perform(.terms, launch) == nil)
    #expect(world.logged.contains("limits.memory, 100"))
    #expect(world.logged.contains("is not enforced: it has no cgroup of its own"))
  }

  @Test func `A worker's sockets are made in their step, and removed by the undo`() throws {
    let (worker, launch) = try launch { $0.readiness = .notify }
    #expect(try perform(.channels, launch) == nil)
    let conversation = try #require(worker.conversation)
    let paths = conversation.paths
    #expect(conversation.notifyPath != nil && conversation.workerSocketPath != nil)
    #expect(!paths.isEmpty && paths.allSatisfy { fileExists($0) })
    var undone = 0
    launch.undo { undone += 1 }
    #expect(undone == 1, "nothing has to be waited for")
    #expect(worker.conversation == nil && conversation.isOver)
    world.services.socketFiles.drain(within: .seconds(60))
    #expect(paths.allSatisfy { isAbsent($0) })
  }

  @Test func `Only a worker whose configuration asks for it gets NOTIFY_SOCKET`() throws {
    let terms: [(has: Bool, change: (inout WorkerConfiguration) -> Void)] = [
      (false, { _ in }), (false, { $0.shed = .notify }), (true, { $0.notify = true }),
      (true, { $0.watchdog = .seconds(60) }),
    ]
    for (index, (has, change)) in terms.enumerated() {
      let (worker, launch) = try launch(change)
      #expect(try perform(.channels, launch) == nil)
      #expect((worker.conversation?.notifyPath != nil) == has, "\(index)")
      launch.undo {}
    }
  }

  @Test func `Sockets that are made after the launch was undone are removed again`() throws {
    let (worker, launch) = try launch { $0.readiness = .notify }
    var outcomes: [String?] = []
    launch.perform(.channels, within: .seconds(60)) { outcomes.append($0) }
    launch.undo {}
    try world.turn { !outcomes.isEmpty }
    world.services.socketFiles.drain(within: .seconds(60))
    #expect(worker.conversation == nil)
    let directory = ChannelPlan.directory(of: world.socket)
    #expect(try listDirectory(directory).filter { $0.hasPrefix("web") } == [])
  }

  @Test func `A directory in which the sockets can't be made ends the launch`() throws {
    let (worker, launch) = try launch { $0.readiness = .notify }
    // A file has the path of the directory.
    try world.scratch.write("run", "")
    #expect(try perform(.channels, launch) != nil)
    #expect(worker.conversation == nil)
  }

  @Test func `A log that can't be opened ends the launch before anything is forked`() throws {
    let (_, launch) = try launch {
      $0.command = ["/bin/sh"]
      $0.output.file = "/nonexistent/directory/web.log"
    }
    let refusal = try #require(try perform(.fork, launch))
    #expect(refusal.contains("/nonexistent/directory"), "\(refusal)")
    #expect(launch.pid == nil)
    #expect(try perform(.program, launch) == "can't fork its process")
  }

  private var recordPath: String { world.state.workers + "/web.worker" }

  @Test func `A program runs when its record is on disk, by which it can be found`() throws {
    let seen = world.scratch.path + "/seen"
    let script = """
      grep -x pid=$$ \(recordPath) > \(seen).partial
      mv \(seen).partial \(seen)
      sleep 60
      """
    let (worker, launch) = try launch { $0.command = ["/bin/sh", "-c", script] }
    #expect(try perform(.fork, launch) == nil)
    #expect(try perform(.program, launch) == nil)
    let pid = try #require(worker.process?.identity.pid)
    try #require(try eventually { fileExists(seen) })
    #expect(try readText(seen) == "pid=\(pid)\n")
    let record = try world.services.records.store.load("web")
    #expect(record.state == WorkerState.launching.rawValue && record.process.pid == pid)
    var undone = 0
    launch.undo { undone += 1 }
    try world.turn { undone == 1 }
    world.services.records.drain()
    #expect(isAbsent(recordPath), "the launch was undone")
    #expect(world.services.records.record(of: "web") == nil)
  }

  @Test func `Terms that come after the launch was undone continue nothing`() throws {
    let (_, launch) = try launch()
    var outcomes: [String?] = []
    launch.perform(.terms, within: .seconds(60)) { outcomes.append($0) }
    launch.undo {}
    var later = false
    world.services.jobs.run(about: "later", within: .seconds(60), {}, then: { _ in later = true })
    try world.turn { later }
    try world.finishJobs()
    #expect(outcomes.isEmpty)
  }
}

@Suite("The daemon's components in a launch") struct WorkerLaunchesTests {
  private let world: AdapterWorld

  init() throws { world = try AdapterWorld() }

  private func launch(_ worker: WorkerUnit) -> WorkerLaunch { WorkerLaunch(worker, world.launches) }

  @Test func `A worker isn't launched beside a process of its own from an earlier daemon`() throws {
    let launch = launch(try world.add("web", .terminated))
    #expect(launch.obstacle == nil)
    world.services.records.save(try world.record()) { _ in }
    let obstacle = try #require(launch.obstacle)
    #expect(obstacle.contains("`kill -9 \(getpid())`"))
    #expect(self.launch(try world.add("api", .terminated)).obstacle == nil)
  }

  @Test func `A record of another boot or an ended process prevents no launch`() throws {
    let launch = launch(try world.add("web", .terminated))
    world.services.records.save(try world.record { $0.bootID = "another" }) { _ in }
    #expect(launch.obstacle == nil)
    world.services.records.save(
      try world.record { $0.process = ProcessIdentity(pid: getpid(), startTime: 1) }
    ) { _ in }
    #expect(launch.obstacle == nil)
  }

  @Test func `A program that runs has a record before the engine knows it`() throws {
    let worker = try world.add("web", .launching)
    launch(worker).programDidStart()
    world.services.records.drain()
    #expect(try world.services.records.store.load("web").state == "launching")
    #expect(worker.launched?.command == ["web", "--serve"])
    #expect(world.logged.contains("web: launched as pid \(getpid())"))
    #expect(world.notes.all == [])
  }

  @Test func `A program whose worker has no process is neither recorded nor logged`() throws {
    let worker = try world.add("web", .terminated)
    launch(worker).programDidStart()
    world.services.records.drain()
    #expect(!world.services.records.store.contains("web") && worker.launched == nil)
    #expect(world.logged == "")
  }

  @Test func `A failed launch removes a worker that was dropped meanwhile`() throws {
    let worker = try world.add("web", .terminated)
    let launch = launch(worker)
    launch.didFail()
    #expect(world.workers[worker.id] === worker)
    world.driver.send(.removed(worker.id))
    launch.didFail()
    #expect(world.workers[worker.id] == nil)
    launch.didFail()
  }

  @Test func `A worker that can't be launched counts among the ended ones`() throws {
    for name in ["one", "two", "three"] {
      launch(try world.add(name, .terminated, isDeclared: false)).didFail()
    }
    #expect(Set(world.workers.keys.map(\.name)) == ["two", "three"])
  }

  @Test func `When a worker runs, those that depend on it are started`() throws {
    let web = try world.add("web", .terminated) { $0.dependsOn = [Dependency("db", .started)] }.id
    let worker = try world.add("db", .terminated)
    world.starter.start(web) { _ in }
    worker.process = try .forTest("db")
    #expect(world.asked == ["restart db"])
    launch(worker).didLaunch()
    #expect(world.asked == ["restart db", "start web"])
  }
}
