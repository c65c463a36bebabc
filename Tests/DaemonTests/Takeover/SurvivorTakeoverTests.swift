import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import Testing

@testable import Daemon

@Suite("Processes and images that an earlier daemon has left") struct SurvivorTakeoverTests {
  private let world: AdapterWorld
  private let memory: KernelMemory

  init() throws {
    world = try AdapterWorld()
    memory = world.makeMemory()
  }

  @discardableResult
  private func adopt(_ record: WorkerRecord) throws -> WorkerUnit {
    try world.survivors.takeOver(record)
  }

  private func unit(_ name: String = "web") throws -> WorkerUnit {
    try #require(world.workers[WorkerID(name)])
  }

  // MARK: the process

  private func life(of record: WorkerRecord) -> ProcessLife {
    world.services.processes.life(of: record, bootID: AdapterWorld.bootID)
  }

  @Test func `An undeclared worker is taken over as it was recorded`() throws {
    try adopt(
      try world.record {
        $0.command = ["serve", "-v"]
        $0.directory = "/srv"
        $0.importance = 40
        $0.asleepSince = 5
        $0.watchdog = 3_000_000_000
      })
    let worker = try unit()
    #expect(!worker.isDeclared && worker.configuration.command == ["serve", "-v"])
    #expect(worker.configuration.importance == 40)
    #expect(worker.environment == ["HOME": "/root", "PORT": "1"])
    #expect(worker.process?.identity.pid == getpid() && worker.exitWatch != nil)
    #expect(worker.asleepSince == Instant(nanoseconds: 5))
    #expect(worker.watchdogInterval == .seconds(3) && worker.external == nil)
    #expect(worker.sleep != nil && worker.wakeWatch != nil && worker.conversation != nil)
  }

  @Test func `An importance that no configuration could have is limited`() throws {
    for (recorded, kept) in [(-5, 0), (1000, 100), (40, 40)] {
      try adopt(try world.record("w\(kept)") { $0.importance = recorded })
      #expect(try unit("w\(kept)").configuration.importance == kept)
    }
  }

  @Test func `A declared worker keeps its configuration, and shows its launch`() throws {
    let worker = try world.add("web", .terminated)
    try adopt(
      try world.record {
        $0.command = ["old"]
        $0.external = .mayNot
      })
    #expect(try unit() === worker && worker.isDeclared)
    #expect(worker.configuration.command == ["web", "--serve"])
    #expect(worker.launched?.command == ["old"])
    #expect(worker.keysChangedSinceLaunch.contains("command"))
    #expect(worker.external?.mayBeTerminated == false)
  }

  @Test func `An adopted worker keeps its policy, or is in shadow mode without it`() throws {
    try adopt(
      try world.record {
        $0.external = .mayNot
        $0.policy = "server"
        $0.settings = ["hibernate.after=7s"]
      })
    let worker = try unit()
    let policy = worker.configuration.policy
    #expect(policy.name == "server" && policy.hibernate.after == .seconds(7))
    #expect(policy.mode == .enforce && worker.external?.chosen?.name == "server")
    try adopt(
      try world.record("db") {
        $0.external = .mayNot
        $0.policy = "removed"
      })
    #expect(try unit("db").configuration.policy.mode == .shadow)
  }

  @Test func `A process that has ended can't be taken over`() throws {
    let record = try world.record { $0.process = ProcessIdentity(pid: getpid(), startTime: 1) }
    #expect(life(of: record) == .hasEnded)
    #expect(throws: (any Error).self) { try adopt(record) }
    #expect(world.workers.count == 0 && world.restarts.histories[WorkerID("web")]?.exits == nil)
    #expect(life(of: try world.record()) == .lives)
    #expect(life(of: try world.record { $0.bootID = "another" }) == .hasEnded)
  }

  @Test func `A worker that couldn't be taken over has nothing of its recorded run`() throws {
    let worker = try world.add("web", .terminated)
    let path = world.scratch.path + "/web.worker"
    let record = try world.record {
      $0.process = ProcessIdentity(pid: getpid(), startTime: 1)
      $0.external = .mayNot
      $0.asleepSince = 5
      $0.watchdog = 3_000_000_000
      $0.workerSocket = path
    }
    #expect(throws: (any Error).self) { try adopt(record) }
    #expect(try unit() === worker && worker.isDeclared)
    #expect(worker.external == nil, "its next run is the daemon's own")
    #expect(worker.asleepSince == nil && worker.watchdogInterval == nil)
    #expect(worker.conversation == nil && worker.process == nil)
    world.services.socketFiles.drain(within: .seconds(60))
    #expect(isAbsent(path))
  }

  @Test func `A worker whose cgroup can't be used isn't taken over by half`() throws {
    try world.scratch.write("state/images/web.image", "memory")
    let record = try world.record { $0.cgroupPath = "/no/such/group" }
    #expect(throws: (any Error).self) { try adopt(record) }
    #expect(world.workers.count == 0)
    #expect(!isAbsent(world.state.image(of: "web")))
  }

  @Test func `Nothing is left of an ended worker, and others keep their images`() throws {
    let record = try world.record { $0.bootID = "another" }
    try world.services.records.store.save(record)
    for name in ["web.image", "web.image.base", "db.image"] {
      try world.scratch.write("state/images/\(name)", "memory")
    }
    // The record's content doesn't matter: its worker may live.
    try world.scratch.write("state/workers/db.worker", "damaged")
    world.survivors.adoptSurvivors()
    world.services.records.drain()
    world.services.disk.drain()
    #expect(try listDirectory(world.state.images) == ["db.image"])
    #expect(!world.services.records.contains("web") && world.workers.count == 0)
  }

  @Test func `Only the processes of the cgroup of the worker that has ended are killed`() throws {
    let group = world.scratch.path + "/group"
    try world.scratch.write("group/cgroup.events", "populated 0\nfrozen 0\n")
    let inode = try WorkerCgroup(path: group).inode
    // The file has what was written to it, which the kernel's wouldn't.
    for (recorded, written) in [(inode + 1, ""), (inode, "1")] {
      try world.scratch.write("group/cgroup.kill", "")
      let record = try world.record {
        $0.cgroupPath = group
        $0.cgroupInode = recorded
      }
      memory.removeRemains(of: record)
      #expect(try readText(group + "/cgroup.kill") == written)
    }
  }

  @Test func `Of images without a record, those stay whose processes live`() throws {
    let scratch = world.scratch
    try scratch.writeImage("state/images/lost.image", of: [.current(of: getpid())])
    try scratch.writeImage("state/images/lost.image.base", of: [.current(of: getpid())])
    try scratch.write("state/images/lost.image.partial", "")
    try scratch.writeImage("state/images/ended.image", of: [])
    try scratch.write("state/images/idle.image.base", "memory")
    try scratch.write("state/images/notes.txt", "text")
    memory.removeOrphanedImages { _ in false }
    #expect(
      Set(try listDirectory(world.state.images)) == ["lost.image", "lost.image.base", "notes.txt"])
  }

  @Test func `A worker that may live keeps its snapshot, also if its name has a dot`() throws {
    let directory = world.state.snapshots
    for name in ["web%2e1", "old%2e1", "web"] {
      try world.scratch.write("state/snapshots/\(name)", "text/plain\nbusy")
    }
    try world.scratch.write("state/workers/web%2e1.worker", "damaged")
    world.survivors.adoptSurvivors()
    #expect(try listDirectory(directory) == ["web%2e1"])
  }

  // MARK: states of sleep

  private func survivorState(of record: WorkerRecord) throws -> SurvivorState {
    let target = try #require(try adopt(record).target())
    return memory.survivorState(of: target, by: record)
  }

  private func isInDoubt(_ record: WorkerRecord) throws -> Bool {
    if case .inDoubt = try survivorState(of: record) { true } else { false }
  }

  @Test func `A worker that is recorded as hibernated and runs is without its image`() throws {
    guard case .withoutImage(let path) = try survivorState(of: try world.record("web", .hibernated))
    else {
      Issue.record("it is at rest, or in doubt")
      return
    }
    #expect(path == world.state.image(of: "web"))
  }

  @Test func `A worker that doesn't sleep as its record says is in doubt`() throws {
    try world.scratch.write("state/images/web.image", "damaged")
    for state in [WorkerState.hibernated, .suspended, .background, .resuming, .hibernating] {
      #expect(try isInDoubt(try world.record("web", state)), "\(state)")
      world.workers.removeAll()
    }
  }

  @Test func `A suspended worker with an image may be half hibernated: it is in doubt`() throws {
    let record = try world.record("web", .suspended)
    #expect(try isInDoubt(record), "it runs")
    try world.scratch.write("state/images/web.image.partial", "half")
    #expect(try isInDoubt(record))
  }

  @Test func `The base of a suspended worker that sleeps on is removed`() throws {
    let (scratch, record) = (world.scratch, try world.record("web", .suspended))
    try scratch.write("group/cgroup.events", "populated 1\nfrozen 1\n")
    try scratch.write("group/cgroup.procs", "\(getpid())\n")
    try scratch.write("state/images/web.image.base", "memory")
    let target = HibernationTarget(
      name: "web", root: record.process, cgroup: try WorkerCgroup(path: scratch.path + "/group"))
    guard case .asleep(.suspended, nil) = memory.survivorState(of: target, by: record) else {
      Issue.record("it is in doubt")
      return
    }
    #expect(try listDirectory(world.state.images).isEmpty)
  }

  @Test func `Only a worker recorded as hibernated is certain to have an image`() throws {
    let directory = try #require(ImageDirectory(of: world.state.image(of: "web")))
    func expectation(_ state: WorkerState) throws -> ImageExpectation {
      .of(try world.record("web", state) { $0.imageDirectory = directory.text })
    }
    // A daemon may have died in the middle of a hibernation or a resume.
    for state in [WorkerState.hibernating, .resuming, .terminating] {
      #expect(try expectation(state) == .unknown(in: directory), "\(state)")
    }
    for state in [WorkerState.suspended, .background, .foreground] {
      #expect(try expectation(state) == .awake(in: directory), "\(state)")
    }
    #expect(ImageExpectation.of(try world.record("web", .hibernated)) == .hibernated)
  }
}
