import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Testing

@testable import Daemon

@Suite("Workers that an earlier daemon has left") struct SurvivorAdoptionTests {
  private let world: AdoptionWorld
  private let memory: FakeMemory
  private let web = WorkerID("web")
  private static let image = ImageOnDisk(path: "/images/web.image")

  init() throws {
    world = try AdoptionWorld()
    memory = world.memory
  }

  private func unit(_ name: String = "web") throws -> WorkerUnit {
    try #require(world.workers[WorkerID(name)])
  }

  // MARK: running workers

  @Test func `A worker in an unknown state is recorded, woken, and runs`() throws {
    world.declare(.forTest("web"))
    try world.leave("web", .hibernated) { $0.imageDirectory = "5-6" }
    world.adopt()
    #expect(world.state() == .terminated && world.returning.isAdopting(web))
    #expect(memory.asked == ["recover", "remove orphans"])
    #expect(world.recorded()?.state == "resuming" && world.recorded()?.imageDirectory == "5-6")
    #expect(try unit().sleep?.isActing == true, "its process may not be reaped")
    world.recovered("web", 3 << 20)
    #expect(world.state() == .background && !world.returning.isUnderWay)
    #expect(world.recorded()?.state == "background")
    #expect(
      world.isLogged(
        "web: adopted and woken, pid \(getpid()), \(ByteCount.megabytes(3)) of memory restored"))
  }

  @Test func `A worker that was in the foreground returns there, and is recorded there`() throws {
    try world.leave("web", .foreground)
    try world.leave("old", .suspended) { $0.wasInFront = true }
    world.adopt()
    #expect(try unit().returnsToFront && unit("old").returnsToFront)
    world.recovered()
    #expect(world.state() == .foreground && world.recorded()?.state == "foreground")
    #expect(try !unit().returnsToFront)
  }

  @Test func `Requests wait for the adoption, and are performed once in their order`() throws {
    try world.leave("web")
    try world.leave("other")
    #expect(!world.returning.whenAdopted(web) { Issue.record("it isn't being adopted yet") })
    world.adopt()
    var performed: [Int] = []
    for number in 1...3 {
      let isWaiting = world.returning.whenAdopted(web) {
        performed.append(number)
        // Its next request doesn't wait any more.
        #expect(!world.returning.whenAdopted(web) { performed.append(-number) })
        #expect(world.state() == .background)
      }
      #expect(isWaiting)
    }
    world.recovered("other")
    #expect(performed.isEmpty)
    world.recovered()
    world.recovered()
    #expect(performed == [1, 2, 3])
    #expect(world.events == ["adopted", "adopted"])
  }

  @Test func `Its connections are accepted when the engine knows it again`() throws {
    let path = world.base.scratch.path + "/web.worker"
    try world.leave("web") { $0.workerSocket = path }
    world.adopt()
    let worker = try WorkerSocketPeer(path)
    try world.base.finishJobs()
    #expect(try unit().conversation?.talk?.connectionCount == nil)
    world.recovered()
    try world.base.turn { try unit().conversation?.talk?.connectionCount == 1 }
    #expect(try worker.hear().count == 1)
  }

  // MARK: sleeping workers

  @Test func `A worker that sleeps as recorded sleeps on with its image, watched`() throws {
    world.declare(.forTest("web"))
    try world.leave("web", .hibernated)
    memory.rests["web"] = .asleep(.hibernated, Self.image)
    world.adopt()
    #expect(memory.asked == ["find inputs", "remove orphans"])
    #expect(try world.returning.isAdopting(web) && unit().image?.path == Self.image.path)
    let inputs = try FakeInputs()
    inputs.waiting = "a connection"
    memory.endSearch(of: "web", .success(inputs))
    #expect(try unit().wakeWatch?.isWatching == true)
    let record = try #require(world.recorded())
    #expect(record.state == "hibernated" && record.imagePath == Self.image.path)
    #expect(world.isLogged("web: adopted, still hibernated, pid \(getpid())"))
    // An input came before it was watched, so the worker is woken.
    #expect(world.events == ["added", "adopted", "wakeNeeded"] && world.state() == .resuming)
  }

  @Test func `The timer and the trim of a suspended worker continue`() throws {
    try world.leave("web", .suspended) {
      $0.alarm = EventLoop.now.nanoseconds + 3_600_000_000_000
    }
    memory.rests["web"] = .trimmed(MissingBytes(36 << 20, isTrimmed: true))
    world.adopt()
    memory.endSearch(of: "web", .success(try FakeInputs()))
    #expect(try world.state() == .suspended && unit().bytesInTrimImage == 36 << 20)
    #expect(try unit().wakeWatch?.timer.due?.nanoseconds == world.recorded()?.alarm)
    #expect(world.recorded()?.alarm != nil)
  }

  @Test(
    "A sleeping worker whose sockets can't be watched is woken if nothing else would wake it",
    arguments: [
      (ForegroundRules.Mode.manual, false, false), (.activity, false, true), (.manual, true, true),
    ])
  func unheard(mode: ForegroundRules.Mode, forbidsStrangers: Bool, isWoken: Bool) throws {
    world.declare(.forTest("web", mode: mode))
    world.base.strangers.set { $0.forbidsStrangers = forbidsStrangers }
    try world.leave("web", .suspended)
    memory.rests["web"] = .asleep(.suspended, nil)
    world.adopt()
    let inputs = try FakeInputs()
    inputs.refusals = [SystemCallError("pidfd_getfd", on: "socket", code: EPERM)]
    memory.endSearch(of: "web", .success(inputs))
    #expect(world.events.contains("wakeNeeded") == isWoken)
    #expect(world.state() == (isWoken ? .resuming : .suspended))
  }

  // MARK: failures

  @Test func `A worker that can't be adopted is reported, and keeps record and image`() throws {
    world.declare(.forTest("web"))
    try world.leave("web", .hibernated) { $0.cgroupPath = "/no/such/group" }
    try world.leave("other")
    world.adopt()
    #expect(world.isLogged("web: can't be adopted: "))
    #expect(
      world.isLogged("; restart the daemon to try again, or end it with `kill -9 \(getpid())`"))
    #expect(!world.returning.isAdopting(web) && world.state() == .terminated)
    #expect(world.recorded()?.state == "hibernated")
    // The other worker is adopted.
    #expect(memory.asked == ["recover", "remove orphans"])
    #expect(world.recorded("other")?.state == "resuming")
  }

  @Test func `A worker that can't be adopted still gets its missing pages`() throws {
    memory.trimmedWorkers = ["damaged", "other", "web"]
    try world.leave("web") { $0.cgroupPath = "/no/such/group" }
    try world.leave("other")
    try world.base.scratch.write("state/workers/damaged.worker", "damaged")
    world.adopt()
    #expect(memory.servedUnadopted == ["damaged", "web"])
    // Nor does it depend on the other records.
    let blind = try AdoptionWorld()
    blind.memory.trimmedWorkers = ["web"]
    let workers = blind.base.state.workers
    #expect(rename(workers, workers + ".away") == 0)
    blind.adopt()
    #expect(blind.memory.servedUnadopted == ["web"])
  }

  @Test func `A worker that ended without a daemon, also at the last moment, is removed`() throws {
    try world.leave("web")
    try world.leave("last")
    let strangers = world.base.strangers
    strangers.set { $0.ended = ["web"] }
    memory.endsWhenOpened = { name in
      strangers.set { $0.ended.insert(name) }
      return name == "last"
    }
    world.base.restarts.add(web, exits: [])
    world.adopt()
    #expect(
      Set(memory.asked.prefix(2)) == ["remove remains of web", "remove remains of last"])
    #expect(memory.asked.last == "remove orphans")
    #expect(world.isLogged("web: ended while no daemon was running"))
    #expect(world.isLogged("last: ended while no daemon was running"))
    let last = world.base.restarts.histories[web]?.exits.last
    #expect(last?.why == "ended while no daemon was running" && last?.status == .unknown)
    #expect(world.recorded() == nil && world.recorded("last") == nil)
    #expect(world.events.isEmpty && !world.returning.isUnderWay && world.workers.count == 0)
  }

  @Test func `A hibernated worker without its image is terminated`() throws {
    try world.leave("web", .hibernated)
    memory.rests["web"] = .withoutImage("/images/web.image")
    world.adopt()
    #expect(memory.asked == ["remove orphans"] && world.base.killed == [web])
    #expect(world.state() == .suspended && !world.returning.isUnderWay)
    #expect(try unit().sleep?.isMemoryUnverified == true)
    #expect(world.recorded()?.state == "background")
    #expect(
      world.isLogged(
        "web: terminated: its memory can't be restored: its image /images/web.image does not "
          + "exist any more (while reading)"))
  }

  @Test func `A worker whose memory can't be verified is ended, with its requests`() throws {
    try world.leave("web")
    world.adopt()
    var isPerformed = false
    #expect(world.returning.whenAdopted(web) { isPerformed = true })
    world.failed(.unverifiable)
    #expect(world.base.killed == [web] && world.recorded()?.state == "background")
    #expect(world.state() == .suspended && isPerformed)
  }

  @Test func `A worker that can't be woken yet sleeps on, with what is left of its image`() throws {
    try world.leave("web")
    try world.leave("other")
    world.adopt()
    world.failed(.intact, "other")
    world.failed(.intact, "web", leaving: Self.image)
    #expect(world.events.suffix(2) == ["adopted", "wakeNeeded"], "no input would wake it")
    #expect(world.state() == .resuming && world.state(of: "other") == .resuming)
    #expect(try unit().image?.path == Self.image.path && unit("other").image == nil)
    // The record stays as it is.
    #expect(world.recorded()?.state == "resuming")
    #expect(world.isLogged("web: adopted; it can't be woken yet"))
  }

  @Test func `The end of a run ends its adoption, and requests are performed`() throws {
    world.declare(.forTest("web"))
    world.declare(.forTest("sleeper"))
    try world.leave("web")
    try world.leave("sleeper", .suspended)
    memory.rests["sleeper"] = .asleep(.suspended, nil)
    world.adopt()
    var performed: [String] = []
    for name in ["web", "sleeper"] {
      #expect(world.returning.whenAdopted(WorkerID(name)) { performed.append(name) })
      try unit(name).endRun(world.base.services.loop)
    }
    world.recovered()
    memory.endSearch(of: "sleeper", .success(try FakeInputs()))
    #expect(performed == ["web", "sleeper"] && !world.returning.isUnderWay)
    #expect(!world.events.contains("adopted"))
    #expect(world.state() == .terminated)
  }

  @Test func `A worker that a reload removed meanwhile isn't added to the engine again`() throws {
    try world.leave("web")
    try world.leave("sleeper", .suspended)
    memory.rests["sleeper"] = .asleep(.suspended, nil)
    world.adopt()
    for name in ["web", "sleeper"] { world.workers[WorkerID(name)] = nil }
    world.recovered()
    memory.endSearch(of: "sleeper", .success(try FakeInputs()))
    #expect(world.events.isEmpty && !world.returning.isUnderWay)
  }

  @Test func `A very long adoption is logged once, delays none, and counts at its end`() throws {
    try world.leave("web")
    try world.leave("other")
    world.adopt()
    world.recovered("other")
    var isPerformed = false
    #expect(world.returning.whenAdopted(web) { isPerformed = true })
    world.base.timers.advance(by: SurvivorAdoption.timeout * 3)
    let lines = world.base.logged.split(separator: "\n").filter { $0.contains("takes longer") }
    #expect(lines.count == 1)
    #expect(
      lines.last?.hasSuffix(
        "web: adopting it takes longer than \(SurvivorAdoption.timeout.text); "
          + "requests that wait for it: 1") == true)
    #expect(world.state(of: "other") == .background && !isPerformed)
    world.recovered()
    #expect(world.state() == .background && isPerformed)
  }

  @Test func `A damaged record is reported, and so is a directory that can't be read`() throws {
    try world.base.scratch.write("state/workers/web.worker", "damaged")
    try world.leave("other")
    world.adopt()
    #expect(world.isLogged("/workers/web.worker is damaged"))
    #expect(memory.asked == ["recover", "remove orphans"])

    let blind = try AdoptionWorld()
    try blind.leave("web")
    let workers = blind.base.state.workers
    #expect(rename(workers, workers + ".away") == 0)
    try blind.base.scratch.write("state/workers", "no directory")
    blind.adopt()
    #expect(blind.base.logged.contains("can't look for workers of an earlier daemon"))
    // No image counts as an orphan's.
    #expect(blind.memory.asked.isEmpty)
  }
}
