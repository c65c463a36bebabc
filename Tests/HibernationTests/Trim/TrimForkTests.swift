import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Workers that fork while they are trimmed by userfaultfd: they stay trimmed.
@Suite(.serialized, .needsUserfaults)
struct TrimForkTests {
  let service = HibernationService()

  private static func command(
    _ name: String, of program: String = "missing_forks"
  ) throws -> [String] { [try Fixture.compile(program), name, Fixture.scratch] }

  private func fill(_ target: HibernationTarget, _ image: String) throws {
    try service.fill(target)
    #expect(isGone(image))
    service.forget(target.name)
  }

  @Test(
    "A daemon killed while a trimmed worker forks loses nothing, and the worker stays trimmed",
    arguments: [(FaultPoint.eventRead, 1), (.childFilled, 1), (.childFilled, 5)], [false, true])
  func deaths(point: (fault: FaultPoint, time: Int), hasStandby: Bool) throws {
    let lock = try Descriptor.open(Fixture.imagePath() + ".lock", O_RDWR | O_CREAT)
    defer { withExtendedLifetime(lock) {} }
    let probe = try Probe(
      Self.command("fork_often"), parking: .frozen, fault: point.fault, time: point.time,
      hasStandby: hasStandby, lock: readLink("/proc/self/fd/\(lock.raw)"))
    var early: String?
    for _ in 0..<10 {
      try probe.perform("trim to image")
      try probe.talk.send("run")
      let isDying = try eventually {
        if try early == nil && probe.talk.hasSome { early = try probe.talk.line() }
        return try early == "present"
          || pollDescriptor(probe.daemon.pidfd.raw, for: POLLIN, until: Deadline(in: .zero))
      }
      try #require(isDying)
      if early != "present" { break }
      early = nil
    }
    try probe.daemonDies()
    let (target, image) = (probe.target, probe.image)
    if hasStandby {
      if early == nil { early = try probe.talk.line() }
      // The next daemon's lock ends the standby pager.
      try #require(flock(lock.raw, LOCK_EX) == 0)
    }
    try service.recover(target, from: image, keepsTrims: true)
    #expect(try early ?? probe.talk.line() == "right")
    #expect(fileExists(image))
    try service.trim(target, to: image)
    try #require(try probe.talk.ask("check") == "whole")
    try fill(target, image)
    try #require(try probe.talk.ask("check") == "whole")
  }

  @Test("A process that is killed just after it has forked ends neither its child nor the others")
  func forkerKilled() throws {
    let probe = try Probe(
      Self.command("fork_in_child"), parking: .frozen, fault: .eventRead,
      variables: ["DORMOUSE_FAULT_STOPS": "1"])
    try probe.perform("trim to image")
    let forker = try #require(children(of: probe.victim.pid).first)
    try probe.talk.send("run")
    let daemon = probe.daemon.pid
    try #require(try eventually { try ProcessStat.read(daemon).state == .stopped })
    try #require(try eventually { children(of: forker).count == 1 })
    kill(forker, SIGKILL)
    try #require(try eventually { HibernationTarget.lifeOfMemory(forker) == .hasEnded })
    kill(daemon, SIGCONT)
    let answers = [try probe.talk.line(), try probe.talk.line()]
    #expect(answers.sorted() == ["grandchild: whole", "right"])
    #expect(try probe.talk.ask("check") == "whole")
    #expect(fileExists(probe.image))
  }

  /// The daemon is stopped, and this test is the pager.
  @Test("A child that unmaps missing memory before the worker is frozen has its other memory soon")
  func childUnmaps() throws { try forkEarly("fork_and_unmap") { child, _ in child.isReadable } }

  @Test("A child has what its parent unmapped and grew into just after the fork")
  func parentGrows() throws {
    try forkEarly("fork_then_grow") { _, probe in
      try probe.talk.hasSome && probe.talk.line() == "grown"
    }
  }

  /// The worker is frozen once `isReady` returns true for the child's userfaultfd.
  private func forkEarly(
    _ test: String, until isReady: (Userfault, Probe) throws -> Bool
  ) throws {
    for _ in 0..<20 where try childIsWhole(test, isReady) { return }
    Issue.record("no fork was read before the freeze")
  }

  /// Returns false if the pager has seen the fork while it filled a page: it freezes the worker
  /// then before it reads the message.
  private func childIsWhole(
    _ test: String, _ isReady: (Userfault, Probe) throws -> Bool
  ) throws -> Bool {
    let probe = try Probe(Self.command(test, of: "missing_early_forks"), parking: .frozen)
    try probe.perform("trim to image")
    let daemon = probe.daemon.pid
    kill(daemon, SIGSTOP)
    let isStopped = try eventually {
      // A thread that has just ended isn't listed the next time.
      try threads(of: daemon).allSatisfy {
        (try? ProcessStat.read(thread: $0, of: daemon))?.state == .stopped
      }
    }
    try #require(isStopped)
    let handle = try #require(try FaultHandle.find(in: probe.victim))
    let cgroup = try #require(probe.cgroup)
    let pager = try Pager(
      image: ImageReader(path: probe.image), target: probe.target, cgroup: cgroup,
      pagedProcesses: [PagedProcess(index: 0, handle: handle)], firstOutput: FirstOutput(),
      isFrozen: false, isContinuation: true, retry: FillRetry([probe.victim]) { _ in })
    try probe.talk.send("run")
    let isEarly = try drainEarlyFork(of: pager.processes[0], pager) { try isReady($0, probe) }
    try pager.repairAndThaw()
    if !isEarly { return false }
    var answer = try probe.talk.line()
    if answer == "right" { answer = try probe.talk.line() }
    #expect(answer == "child: whole")
    return true
  }

  /// Reads the message of a fork before the worker is frozen. At the end, no reference to the
  /// child's userfaultfd is left.
  private func drainEarlyFork(
    of process: LazyProcess, _ pager: Pager, when isReady: (Userfault) throws -> Bool
  ) throws -> Bool {
    guard let forked = try forkMessage(of: process, pager) else { return false }
    let child = Userfault(descriptor: try #require(forked.child), pid: process.pid)
    try #require(try eventually { try isReady(child) })
    let began = Clocks.monotonic
    try pager.drain(process, early: forked)
    #expect(Clocks.monotonic - began < 8_000_000_000)
    return true
  }

  /// Fills pages for a process until it forks. Returns nil if the fork was handled meanwhile.
  private func forkMessage(
    of process: LazyProcess, _ pager: Pager
  ) throws -> FaultJournal.Received? {
    let deadline = Deadline(in: .seconds(Talk.timeout))
    while !deadline.hasPassed {
      if pager.isFrozen { return nil }
      guard let received = try pager.nextMessage(of: process) else {
        // The daemon may have read a message just before it was stopped. It is sent again.
        for range in process.mappings { process.userfault.wake(range.address, range.length) }
        usleep(1000)
        continue
      }
      if received.child != nil { return received }
      let page = received.message.b & ~(pageSize - 1)
      if let original = process.layout.original(of: page),
        let chunk = process.chunk(with: original)
      {
        try pager.fill(
          .unread(chunk: chunk, step: pager.image.steps[chunk]), of: process,
          Pager.Destination(process))
      } else {
        _ = try pager.fillZeros(at: page, of: process)
      }
    }
    throw TestFailure("it doesn't fork")
  }

  @Test("A daemon killed at a random moment while a trimmed worker forks loses nothing")
  func randomMoments() throws {
    var refused = 0
    for seed in 0..<PagerDeathTests.rounds {
      var random = TestRandom(seed: seed)
      let probe = try Probe(
        Self.command(seed % 2 == 0 ? "fork_100_times" : "fork_in_threads"), parking: .frozen,
        hasStandby: seed % 4 > 1)
      try probe.perform("trim to image")
      try probe.talk.send("run")
      usleep(UInt32.random(in: 0..<300_000, using: &random))
      try probe.daemonDies(by: SIGKILL)
      let (target, image) = (probe.target, probe.image)
      do {
        try service.recover(target, from: image, keepsTrims: true)
      } catch {
        // The kill came during a fork, with a signal just before it.
        try #require(error.aftermath == .unverifiable, "seed \(seed): \(error)")
        try #require(error.reason.contains("forked"), "seed \(seed): \(error)")
        refused += 1
        continue
      }
      let answer = try probe.talk.line()
      try #require(answer == "right" || answer == "present", "seed \(seed): \(answer)")
      try fill(target, image)
      try #require(try probe.talk.ask("check") == "whole", "seed \(seed)")
    }
    #expect(refused * 5 <= PagerDeathTests.rounds)
  }

  @Test("A trimmed worker of which a process has executed another program is served after a death")
  func executed() throws {
    let (orders, output) = (Fixture.imagePath() + ".fifo", Fixture.imagePath() + ".txt")
    try #require(mkfifo(orders, 0o600) == 0)
    // With O_WRONLY, this would wait for the reader.
    let toChild = try Descriptor.open(orders, O_RDWR)
    let (parent, child) = (try Fixture.compile("torture"), try Fixture.compile("layers"))
    let script = "\(child) 256 < \(orders) > \(output) & exec \(parent) 4 14 3"
    let probe = try Probe(["sh", "-c", script], parking: .frozen)
    let sum = try probe.talk.ask("sum")
    func waitForStart(_ number: Int) throws {
      let hasStarted = try eventually {
        try fileExists(output) && readText(output).split(separator: "\n").count == number
      }
      try #require(hasStarted)
    }
    try waitForStart(1)
    try probe.perform("trim to image")
    let image = try ImageReader(path: probe.image)
    try #require(image.processes.indices.count { image.hasBackgroundFill(of: $0) } == 2)
    try toChild.writeAll("exec\n")
    try waitForStart(2)
    try probe.daemonDies(by: SIGKILL)
    let (target, path) = (probe.target, probe.image)
    try service.recover(target, from: path, keepsTrims: true)
    #expect(fileExists(path))
    try #require(try probe.talk.ask("sum") == sum)
    try fill(target, path)
    try #require(try probe.talk.ask("sum") == sum)
  }

  @Test("A worker that forks all the time can be trimmed again")
  func furtherTrims() throws {
    let (victim, image) = try Victim.ready(Self.command("fork_100_times"))
    let target = victim.target
    for _ in 0..<10 {
      try service.trim(target, to: image)
      try victim.send("run")
      while try !victim.hasSaid {
        do { try service.trim(target, to: image) } catch let error as HibernationError {
          #expect(error.aftermath == .intact, "\(error)")
        }
      }
      let answer = try victim.line()
      try #require(answer == "right" || answer == "present", "\(answer)")
      if answer == "right" { break }
    }
    #expect(try victim.ask("check") == "whole")
    try fill(target, image)
    #expect(try victim.ask("check") == "whole")
  }

  @Test("A worker whose children get very much memory gets all of its own back")
  func often() {
    var cost = ForkCost()
    let second: Int64 = 1_000_000_000
    for round in 0..<100 {
      #expect(cost.add(50 << 20, at: Int64(round) * 4 * second) <= ForkCost.limit)
    }
    for round in 0..<10 { _ = cost.add(50 << 20, at: 400 * second + Int64(round)) }
    #expect(cost.add(50 << 20, at: 401 * second) > ForkCost.limit)
    #expect(cost.add(50 << 20, at: 500 * second) == 50 << 20)
  }
}
