import CLinux
import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Programs that are starting others at the moment at which they are stopped, seized and released.
@Suite(.serialized)
struct SpawningTests {
  let service = HibernationService()

  @Test(
    "A worker inside vfork is woken at once, none of its threads stays traced, and it continues",
    .needsCgroup)
  func longVfork() throws {
    let victim = try Victim(ready: "longvfork", "6000", parking: .frozen)
    #expect(try eventually { try victim.hasThread(in: .uninterruptible) })
    try victim.suspend()
    let started = Clocks.monotonic
    victim.target.restartInterruptedSyscalls()
    try victim.target.wake(isStopped: false)
    let milliseconds = (Clocks.monotonic - started) / 1_000_000
    #expect(milliseconds < 5000, "it took \(milliseconds) ms")
    #expect(try victim.tracedThreads().isEmpty)
    let count = try victim.ask("count")
    #expect(
      try eventually { try victim.ask("count") != count }, "no child has ended since")
    #expect(try victim.tracedThreads().isEmpty)
  }

  @Test(
    "A hibernation that a vfork prevents leaves no thread traced, and the worker continues",
    arguments: Nightly.one(of: Victim.Parking.available))
  func refusedForVfork(parking: Victim.Parking) throws {
    let victim = try Victim(ready: "longvfork", "8000", parking: parking)
    #expect(try eventually { try victim.hasThread(in: .uninterruptible) })
    let target = victim.target
    if parking == .frozen { try victim.suspend() }
    let error = #expect(throws: HibernationError.self) {
      try service.hibernate(HibernationRequest(target, to: Fixture.imagePath()))
    }
    #expect(error?.aftermath == .intact)
    #expect(try victim.tracedThreads().isEmpty)
    target.restartInterruptedSyscalls()
    try target.wake()
    let count = try victim.ask("count")
    #expect(
      try eventually { try victim.ask("count") != count }, "no child has ended since")
  }

  @Test(
    "A tree that is hibernated at any moment continues, and no thread of it stays traced",
    arguments: Nightly.one(of: Victim.Parking.available))
  func storm(parking: Victim.Parking) throws {
    // Without a cgroup, a child that its parent continues (SIGCONT) can't be kept stopped.
    let command = [try Fixture.compile("spawnstorm"), "3"] + (parking == .frozen ? ["stops"] : [])
    let victim = try Victim(ready: command, parking: parking)
    var random = TestRandom()
    var hibernated = 0
    for round in 1...Nightly.rounds(8, of: 20) {
      usleep(useconds_t.random(in: 0...5000, using: &random))
      do {
        if try suspendOnce(victim, parking, isHibernated: round.isMultiple(of: 2)) {
          hibernated += 1
        }
      } catch let error as ProcessTreeError {
        // The tree couldn't be suspended. Without a cgroup that isn't possible at every moment.
        #expect(parking == .traced, "\(error)")
      }
      let before = try counts(victim)
      let goesOn = try eventually {
        zip(before, try counts(victim)).allSatisfy { $0 < $1 }
      }
      let after = try counts(victim)
      try #require(goesOn, "round \(round): from \(before) to \(after)")
      // Threads that are released late have been released when the whole tree runs.
      let free = try eventually { try victim.tracedThreads().isEmpty }
      try #require(free, "round \(round)")
    }
    print("spawnstorm, \(parking): hibernated \(hibernated) times")
  }

  /// Suspends a worker, hibernated or not, and wakes it. Returns whether it was hibernated.
  private func suspendOnce(
    _ victim: Victim, _ parking: Victim.Parking, isHibernated: Bool
  ) throws -> Bool {
    do {
      try victim.suspend()
      if isHibernated {
        let path = try victim.sleep(service)
        try victim.wake(service, from: path)
        return true
      }
      victim.target.restartInterruptedSyscalls()
      try victim.target.wake(isStopped: parking == .traced)
    } catch let error as HibernationError {
      #expect(error.aftermath == .intact, "\(error)")
      victim.target.restartInterruptedSyscalls()
      try victim.carryOn()
    }
    return false
  }

  private func counts(_ victim: Victim) throws -> [Int] {
    try victim.ask("counts").split(separator: " ").dropFirst().compactMap { Int($0) }
  }

  @Test(
    "A wake reports a thread that is still in a trace stop, and works when the thread is released")
  func heldThread() throws {
    let victim = try Victim(["cat"])
    let tracer = WorkQueue(name: "test-tracer")
    let pid = victim.process.pid
    tracer.perform { leaveTraced(pid) }
    try #require(try eventually { try victim.hasThread(in: .traced) })
    try victim.suspend()
    let target = victim.target
    let error = #expect(throws: TraceError.self) { try target.wake() }
    guard case .held(let thread) = error else { throw Unexpected(error: error) }
    #expect(thread == pid)
    #expect(tracer.perform { Stragglers.shared.release() } == 0)
    try target.wake()
    #expect(try victim.tracedThreads().isEmpty)
    #expect(try victim.ask("hello") == "hello")
  }

  @Test("A service releases a thread that it couldn't detach as soon as the thread stops")
  func followedUp() throws {
    let victim = try Victim(ready: "longvfork", "4000")
    let pid = victim.process.pid
    #expect(try eventually { try victim.hasThread(in: .uninterruptible) })
    try service.wait { (_) throws(HibernationError) in
      leaveTraced(pid)
    }
    #expect(try victim.tracedThreads() == [pid])
    #expect(try eventually { try victim.tracedThreads().isEmpty })
    let count = try victim.ask("count")
    #expect(
      try eventually { try victim.ask("count") != count }, "no child has ended since")
  }

  @Test func `A seized process that isn't the intended one is released, and continues`() throws {
    let victim = try Victim(["cat"])
    let other = ProcessIdentity(pid: victim.process.pid, startTime: 1)
    #expect(throws: TraceError.self) { try TraceSession.seize(other) }
    try expectFree(victim)
    let nothing = BriefTracer.perform {
      TraceSession.seizeWhatCanStop(other, until: Deadline(in: .seconds(1))) == nil
    }
    #expect(nothing == true)
    #expect(try victim.tracedThreads().isEmpty)
  }

  @Test func `A seized thread whose number has become another process's is released`() throws {
    let victim = try Victim(["cat"])
    let stranger = try Victim(["cat"])
    let session = TraceSession(
      pid: victim.process.pid, startTime: victim.process.identity.startTime)
    #expect(throws: TraceError.self) { try session.attach(stranger.process.pid) }
    session.detach()
    try expectFree(stranger)
  }

  /// Releases the threads that this thread has seized, as soon as they have stopped.
  private func expectFree(_ victim: Victim) throws {
    let isFree = try eventually {
      Stragglers.shared.release()
      return try victim.tracedThreads().isEmpty
    }
    #expect(isFree)
    #expect(try victim.ask("hello") == "hello")
  }

  private struct Unexpected: Error { let error: TraceError? }
}

/// Imitates the end of a session whose thread had just entered vfork when it was to be stopped.
private func leaveTraced(_ pid: Int32) {
  #expect(clinux_ptrace_seize(pid, 0) == 0)
  #expect(clinux_ptrace_interrupt(pid) == 0)
  Stragglers.shared.add([pid], of: pid)
}

extension Victim {
  /// The traced threads of all its processes.
  func tracedThreads() throws -> [Int32] {
    try allThreads().filter { thread in
      ((try? ProcessStatus.read(thread))?.tracer ?? 0) != 0
    }
  }

  func hasThread(in state: ProcessStat.State) throws -> Bool {
    try allThreads().contains { (try? ProcessStat.read($0))?.state == state }
  }

  private func allThreads() throws -> [Int32] {
    try target.discover().pids.flatMap { (try? TraceSession.threadIDs(of: $0)) ?? [] }
  }
}
