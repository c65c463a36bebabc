import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The daemon is killed (`kill -9`) at every step, and a new daemon restores the worker, byte for
/// byte.
@Suite(.serialized)
struct RecoveryTests {
  let service = HibernationService()

  static func points(of parking: Victim.Parking) -> [FaultPoint] {
    FaultPoint.allCases.filter { point in
      switch point {
      case .recoverySeized, .borrowedAgain, .registersBack, .userfaultOpened, .fillMarked,
        .fillPrepared, .filling, .eventRead, .childFilled, .filled, .handingOver, .unregistered,
        .registered,
        .thawed, .trackerOpened, .baseKept, .baseRemoved, .trimStopped, .trimRecorded,
        .trimBorrowed, .trimAdvised, .trimReturned, .trimContinuing, .trimRepairing, .trimmed,
        .trimHandedOver, .trimUnregistered, .devicePassed:
        false
      case .frozen, .detached: parking == .frozen
      default: true
      }
    }
  }

  static let everyDeath: [(FaultPoint, Victim.Parking)] = Nightly.oneOfEach(
    FaultPoint.allCases.map { point in
      Victim.Parking.available.filter { points(of: $0).contains(point) }.map { (point, $0) }
    })

  @Test("A daemon killed at any step loses nothing", arguments: everyDeath)
  func everyFaultPoint(fault: FaultPoint, parking: Victim.Parking) throws {
    let probe = try Probe(Self.command(), parking: parking, fault: fault)
    let sum = try probe.talk.ask("sum")
    try Self.letDaemonDie(of: probe, at: fault)
    try recoverAndCheck(probe, sum)
  }

  @Test(arguments: Nightly.one(of: Victim.Parking.available))
  func `A daemon killed at random moments loses nothing`(parking: Victim.Parking) throws {
    for seed in 0..<Self.randomRounds {
      var random = TestRandom(seed: seed)
      let probe = try Probe(Self.command(), parking: parking)
      let sum = try probe.talk.ask("sum")
      if seed % 4 == 3 {
        try probe.perform("hibernate")
        try probe.order("resume")
      } else {
        try probe.order("hibernate")
      }
      usleep(UInt32.random(in: 0..<60_000, using: &random))
      try probe.daemonDies(by: SIGKILL)
      try recoverAndCheck(probe, sum, "seed \(seed)")
    }
  }

  /// The number of rounds. DORMOUSE_KILL_ROUNDS=200 runs more of them.
  static let randomRounds = UInt64(
    Nightly.rounds(4, of: 10, variable: "DORMOUSE_KILL_ROUNDS"))

  static let secondDeaths: [(FaultPoint, FaultPoint)] = [
    (.scratchMapped, .recoverySeized), (.evicting, .recoverySeized), (.evicted, .registersBack),
    (.evicted, .writingBack), (.evicting, .writtenBack), (.restored, .unlinked),
  ]

  @Test("A second daemon killed while it recovers loses nothing", arguments: secondDeaths)
  func secondDeath(first: FaultPoint, second: FaultPoint) throws {
    for parking in Nightly.one(of: Victim.Parking.available) {
      let probe = try Probe(Self.command(), parking: parking, fault: first)
      let sum = try probe.talk.ask("sum")
      try probe.die(during: "hibernate")
      try probe.recoverAndDie(at: second)
      try recoverAndCheck(probe, sum)
    }
  }

  @Test(
    "A traced worker that is continued after its daemon's death runs none of its own code",
    arguments: [FaultPoint.evicting, .evicted, .restored, .rested])
  func continuedWhileParked(fault: FaultPoint) throws {
    let probe = try Probe(Self.command(), parking: .traced, fault: fault)
    let sum = try probe.talk.ask("sum")
    try probe.die(during: "hibernate")
    kill(probe.victim.pid, SIGCONT)
    usleep(20_000)
    try recoverAndCheck(probe, sum)
  }

  @Test(.needsCgroup)
  func `A worker that another process has let run without its memory isn't resumed`() throws {
    // A worker that is about to be frozen isn't parked.
    let probe = try Probe(Self.command(), parking: .frozen, fault: .restored)
    _ = try probe.talk.ask("sum")
    try probe.die(during: "hibernate")
    kill(probe.victim.pid, SIGCONT)
    usleep(20_000)
    let error = #expect(throws: HibernationError.self) {
      try service.recover(probe.target, from: probe.image)
    }
    let aftermath = try #require(error?.aftermath)
    #expect(aftermath == .unverifiable || aftermath == .vanished)
  }

  @Test(
    "A worker is recovered beside a program that its manager runs, which isn't stopped",
    .needsCgroup)
  func managersProgram() throws {
    let (probe, sum, group) = try asleepInForeignGroup()
    defer { remove(group) }
    let before = try group.processes()
    let job = try spawnShell("sleep 1000 & wait", in: group)
    defer { end(job) }
    let all = try waitFor(group.processes, until: { $0.count == before.count + 2 })
    try recoverAndCheck(probe, sum, in: group)
    for pid in all where !before.contains(pid) {
      #expect(try eventually { try ProcessStat.read(pid).state == .sleeping })
    }
  }

  @Test(.needsCgroup)
  func `A worker isn't recovered beside a process of unknown origin`() throws {
    let (probe, _, group) = try asleepInForeignGroup()
    defer { remove(group) }
    let shell = try spawnShell("sleep 1000 & wait", in: nil)
    defer { end(shell) }
    let children = {
      try readText("/proc/\(shell.pid)/task/\(shell.pid)/children").split(separator: " ")
        .compactMap { Int32($0) }
    }
    let child = try #require(try waitFor(children, until: { $0.count == 1 }).first)
    // The child has the shell's name until it has become the program.
    _ = try waitFor({ try readText("/proc/\(child)/comm") }, until: { $0 == "sleep\n" })
    try group.add(child)
    let target = try target(of: probe, in: group)
    let error = #expect(throws: HibernationError.self) {
      try service.recover(target, from: probe.image)
    }
    #expect(error?.aftermath == .unverifiable)
    #expect(error?.description.contains("process \(child) (sleep) did not exist") == true)
  }

  @Test func `A worker that may not be traced stays asleep until tracing is permitted`() throws {
    let probe = try Probe(Self.command(), parking: .traced, fault: .evicted)
    let sum = try probe.talk.ask("sum")
    try probe.die(during: "hibernate")
    let pid = probe.victim.pid
    let error = #expect(throws: HibernationError.self) {
      try whileTraced(pid) { try service.recover(probe.target, from: probe.image) }
    }
    #expect(error?.aftermath == .intact)
    #expect(error?.description.contains("can't trace process \(pid): process") == true)
    try recoverAndCheck(probe, sum)
  }

  @Test(
    "The image of another worker isn't restored into a new one, and stays while its process lives")
  func staleImage() throws {
    let probe = try Probe(Self.command(), parking: .traced, fault: .restored)
    let sum = try probe.talk.ask("sum")
    try probe.die(during: "hibernate")
    let other = try Victim(ready: "torture", "1", "0", "9")
    let otherSum = try other.ask("sum")
    let copy = Fixture.imagePath()
    link(probe.image, copy)
    try service.recover(other.target, from: copy)
    #expect(access(copy, F_OK) == 0)
    #expect(try other.ask("sum") == otherSum)
    try recoverAndCheck(probe, sum)
    // The image's owner has ended, so a recovery removes it.
    kill(-probe.victim.pid, SIGKILL)
    kill(probe.victim.pid, SIGKILL)
    #expect(try eventually { probe.victim.hasEnded })
    try service.recover(other.target, from: copy)
    #expect(access(copy, F_OK) != 0)
  }

  // MARK: helpers

  /// Gives the order during which the daemon passes its fault point.
  static func letDaemonDie(of probe: Probe, at fault: FaultPoint) throws {
    let isOfResume = [.writingBack, .writtenBack, .unlinked].contains(fault)
    if isOfResume { try probe.perform("hibernate") }
    try probe.die(during: isOfResume ? "resume" : "hibernate")
  }

  static func command() throws -> [String] {
    [try Fixture.compile("torture"), "4", "14", "3"]
  }

  /// Returns a hibernated worker without a daemon, in a cgroup that stands for another program's.
  private func asleepInForeignGroup() throws -> (Probe, sum: String, WorkerCgroup) {
    let probe = try Probe(Self.command(), parking: .traced, fault: .rested)
    let sum = try probe.talk.ask("sum")
    try probe.die(during: "hibernate")
    let group = try #require(try Victim.makeGroup(for: .frozen))
    for pid in try probe.target.discover().pids { try group.add(pid) }
    return (probe, sum, group)
  }

  private func target(of probe: Probe, in group: WorkerCgroup?) throws -> HibernationTarget {
    var target = probe.target
    if let group { target.cgroup = try WorkerCgroup(path: group.path, isExternal: true) }
    return target
  }

  private func remove(_ group: WorkerCgroup) {
    // A group that is left doesn't disturb other tests.
    try? group.kill()
    try? group.remove(until: Deadline(in: .seconds(60)))
  }

  /// Starts a child of this process, as the worker is one since its daemon's death.
  private func spawnShell(_ script: String, in group: WorkerCgroup?) throws -> SpawnedProcess {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    return try spawn(
      SpawnRequest(
        path: "/bin/sh", arguments: ["sh", "-c", script], environment: ["PATH": Program.path],
        directory: "/tmp", input: null.raw, output: null.raw, error: 2,
        cgroup: group?.directory.raw))
  }

  private func end(_ process: SpawnedProcess) {
    kill(-process.pid, SIGKILL)
    reap(process.pid)
  }

  private func waitFor<Value>(
    _ read: () throws -> Value, until holds: (Value) -> Bool
  ) throws -> Value {
    var value = try read()
    let isThere = try eventually {
      value = try read()
      return holds(value)
    }
    try #require(isThere, "\(value)")
    return value
  }

  func recoverAndCheck(
    _ probe: Probe, _ sum: String, _ comment: Comment? = nil, in group: WorkerCgroup? = nil
  ) throws {
    let image = probe.image
    try service.recover(target(of: probe, in: group), from: image)
    try #require(try probe.talk.ask("sum") == sum, comment)
    #expect(try probe.talk.ask("wake").hasPrefix("woke"), comment)
    let errors = try probe.talk.ask("errors")
    #expect(errors == "errors 0 eintr 0", comment)
    #expect(access(image, F_OK) != 0, comment)
    #expect(access(image + ".partial", F_OK) != 0, comment)
    let leftover = try MemoryMapping.all(of: probe.victim.pid).filter {
      $0.executable && !$0.writable && !$0.hasFile && $0.name.isEmpty
    }
    #expect(leftover.isEmpty, comment)
  }
}
