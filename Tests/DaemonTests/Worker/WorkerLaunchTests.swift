import Lifecycle
import Linux
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
  }

  @Test func `A launch that fails, or is undone, leaves no record`() throws {
    let (_, launch) = try launch { $0.command = ["/bin/sleep", "60"] }
    #expect(try perform(.fork, launch) == nil)
    #expect(try perform(.program, launch) == nil)
    var undone = 0
    launch.undo { undone += 1 }
    try world.turn { undone == 1 }
    world.services.records.drain()
    #expect(isAbsent(recordPath))
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
