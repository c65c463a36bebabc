import CLinux
import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Trimmed workers whose daemon doesn't answer or is killed: their threads wait for missing pages,
/// and nothing is lost.
@Suite(.serialized, .needsUserfaults)
struct TrimPagerTests {
  let service = HibernationService()

  private func start(
    _ command: [String], fault: FaultPoint? = nil, time: Int = 1, hasStandby: Bool = false
  ) throws -> Probe {
    try Probe(command, parking: .frozen, fault: fault, time: time, hasStandby: hasStandby)
  }

  private func trim(_ probe: Probe) throws {
    try probe.perform("trim to image")
    #expect(fileExists(probe.image))
  }

  /// Checks that the worker has all of its memory, and that it can be trimmed again.
  private func check(_ probe: Probe) throws {
    try #require(try probe.talk.ask("verify").hasSuffix("errors 0"))
    let (target, image) = (probe.target, probe.image)
    try service.trim(target, to: image)
    #expect(fileExists(image))
    try #require(try probe.talk.ask("verify").hasSuffix("errors 0"))
    try service.fill(target)
    #expect(isGone(image))
    #expect(try !hasUserfaults(probe.victim.pid))
    service.forget(target.name)
  }

  @Test(
    "After the death of its daemon, a trimmed worker waits until the next one serves it",
    arguments: [false, true], [false, true])
  func recovered(isUsed: Bool, keepsTrims: Bool) throws {
    let probe = try start(Fixture.churn("drops"))
    try trim(probe)
    if isUsed {
      // Some memory is dropped and used, so that the next daemon needs the journal.
      try probe.talk.send("churn 2")
      try #require(try probe.talk.line().hasSuffix("errors 0"))
    }
    try probe.daemonDies(by: SIGKILL)
    try probe.talk.send("verify")
    try service.adoptTrimmed(probe, keepsTrims: keepsTrims)
    #expect(fileExists(probe.image) == keepsTrims)
    try #require(try probe.talk.line().hasSuffix("errors 0"))
    try check(probe)
  }

  @Test("A trimmed worker isn't let run while its image is missing, and has all memory afterwards")
  func imageAway() throws {
    let probe = try start(Fixture.churn())
    try trim(probe)
    try probe.daemonDies(by: SIGKILL)
    let (target, image) = (probe.target, probe.image)
    try #require(rename(image, image + ".away") == 0)
    let removed = #expect(throws: HibernationError.self) {
      try service.adoptTrimmed(probe, keepsTrims: true)
    }
    #expect(removed?.aftermath == .unverifiable)
    // Its record says that the image is in another directory than the one that is there now.
    let expected = ImageExpectation.awake(in: ImageDirectory(text: "1-2"))
    let away = #expect(throws: HibernationError.self) {
      try service.recover(target, from: image, expecting: expected, keepsTrims: true)
    }
    #expect(away?.aftermath == .intact && Hibernator.mayNeedImage(target))
    try #require(rename(image + ".away", image) == 0)
    try service.adoptTrimmed(probe, keepsTrims: true)
    try check(probe)
    #expect(!Hibernator.mayNeedImage(target))
  }

  @Test("A thread whose page fault was read by a daemon that died then gets its page")
  func readFault() throws {
    let probe = try start(Fixture.churn("drops"))
    try trim(probe)
    // Its pager doesn't read the message about the next page fault, but this test does.
    kill(probe.daemon.pid, SIGSTOP)
    #expect(try eventually { try ProcessStat.read(probe.daemon.pid).state == .stopped })
    let handle = try #require(try FaultHandle.find(in: probe.victim))
    try probe.talk.send("verify")
    #expect(try eventually { handle.userfault.isReadable })
    let received = try #require(try handle.journal.read(from: handle.userfault))
    #expect(Int(received.message.event) == CLINUX_UFFD_PAGEFAULT)
    try probe.daemonDies(by: SIGKILL)
    try service.adoptTrimmed(probe, keepsTrims: true)
    try #require(try probe.talk.line().hasSuffix("errors 0"))
    try check(probe)
  }

  @Test("The standby pager serves a trimmed worker whose daemon has been killed")
  func standby() throws {
    let probe = try start(Fixture.churn(), hasStandby: true)
    try trim(probe)
    try probe.daemonDies(by: SIGKILL)
    try #require(try probe.talk.ask("verify").hasSuffix("errors 0"))
    try #require(try probe.talk.ask("churn 1").hasSuffix("errors 0"))
    try service.adoptTrimmed(probe)
    try check(probe)
  }

  /// The points that a trim passes; at others the daemon is killed when the trim is done.
  static let points: [FaultPoint] = [
    .trimStopped, .trimRecorded, .trimBorrowed, .trimAdvised, .trimReturned, .trimContinuing,
    .stopped, .captured, .committed, .evicted, .detached, .rested, .userfaultOpened, .fillMarked,
    .registered, .writtenBack, .fillPrepared, .trimmed,
  ]

  @Test(
    "A daemon killed at any step of a trim by userfaultfd loses nothing",
    arguments: points, Nightly.one(of: [false, true]))
  func everyStep(fault: FaultPoint, hasStandby: Bool) throws {
    let probe = try start(Fixture.churn(), fault: fault, hasStandby: hasStandby)
    try probe.die(during: "trim to image")
    try probe.talk.send("verify")
    try service.adoptTrimmed(probe)
    try #require(try probe.talk.line().hasSuffix("errors 0"), "\(fault)")
    try check(probe)
  }

  @Test("A daemon killed at a random moment of a trim, or while its worker uses memory")
  func randomMoments() throws {
    for seed in 0..<PagerDeathTests.rounds {
      var random = TestRandom(seed: seed)
      let probe = try start(Fixture.churn(), hasStandby: seed % 2 == 1)
      try probe.order("trim to image")
      if seed % 3 != 0 {
        try #require(try probe.reports.line().hasPrefix("done"))
        try probe.talk.send("churn \(seed * 3 + 2)")
      } else {
        try probe.talk.send("verify")
      }
      usleep(UInt32.random(in: 0..<60_000, using: &random))
      try probe.daemonDies(by: SIGKILL)
      do { try service.adoptTrimmed(probe) } catch let error as HibernationError {
        // The kill came during a fork, with a signal just before it.
        try #require(error.aftermath == .unverifiable, "seed \(seed): \(error)")
        try #require(error.reason.contains("forked"), "seed \(seed): \(error)")
        continue
      }
      try #require(try probe.talk.line().hasSuffix("errors 0"), "seed \(seed)")
      try check(probe)
    }
  }

  @Test("A worker that changes its memory keeps it if its daemon dies at any moment of a trim")
  func randomMomentsOfChanges() throws {
    for seed in 0..<PagerDeathTests.rounds {
      var random = TestRandom(seed: seed)
      let probe = try start(
        [try Fixture.compile("missing_writes"), "change_all", Fixture.scratch],
        hasStandby: seed % 2 == 1)
      for _ in 0..<Int.random(in: 0...2, using: &random) {
        try probe.order("trim to image")
        // It can be too busy.
        _ = try probe.reports.line()
      }
      try probe.order("trim to image")
      usleep(UInt32.random(in: 0..<60_000, using: &random))
      try probe.daemonDies(by: SIGKILL)
      try service.adoptTrimmed(probe, keepsTrims: seed % 3 == 0)
      let answer = try probe.talk.ask("run")
      try #require(answer == "right", "seed \(seed)")
      try service.fill(probe.target)
      try #require(try probe.talk.ask("check") == "whole", "seed \(seed)")
      #expect(isGone(probe.image))
      service.forget(probe.target.name)
    }
  }

  @Test("A trimmed worker whose daemon is dead can be killed, and the next one removes the image")
  func killedWhileAlone() throws {
    let probe = try start(Fixture.churn())
    try trim(probe)
    try probe.daemonDies(by: SIGKILL)
    try probe.talk.send("verify")
    kill(probe.victim.pid, SIGKILL)
    reap(probe.victim.pid)
    let error = #expect(throws: HibernationError.self) { try service.adoptTrimmed(probe) }
    #expect(error?.aftermath == .vanished)
    #expect(isGone(probe.image))
  }

  /// No process could say which pages it has dropped since: its journal is closed, too.
  @Test("A trimmed worker without its descriptors is ended with its daemon, and never sees zeros")
  func closesDescriptors() throws {
    let probe = try start(
      [try Fixture.compile("missing_threads"), "close_all", Fixture.scratch], hasStandby: true)
    var answer = "present"
    for _ in 0..<10 where answer == "present" {
      try probe.perform("trim to image")
      answer = try probe.talk.ask("run")
    }
    try #require(answer == "right")
    kill(probe.daemon.pid, SIGSTOP)
    try probe.talk.send("check")
    try probe.daemonDies(by: SIGKILL)
    #expect(try probe.talk.untilEnd().isEmpty)
    #expect(try eventually { probe.victim.hasEnded })
  }

  /// While the daemon doesn't run, a thread waits for its page, and signals reach it.
  @Test(
    "A signal handler runs while a thread waits for memory, or right after a call has it",
    arguments: ["alarm_while_using", "alarm_while_reading"])
  func alarms(name: String) throws {
    try runWithoutDaemon("missing_threads", name) { probe in
      let status = try ProcessStatus.read(probe.victim.pid)
      let pending = status.pendingForThread | status.pendingForProcess
      return ProcessStatus.contains(pending, SIGALRM)
    }
  }

  @Test("A thread that waits for memory that another thread replaces meanwhile gets the new memory")
  func replaced() throws {
    try runWithoutDaemon("missing_changes", "replace_while_waiting") { probe in
      let pid = probe.victim.pid
      // The flags of its mmap.
      let flags = UInt64(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)
      return try WaitingCall.current(thread: pid, of: pid)?.arguments[3] == flags
    }
  }

  /// Lets the program try its case while the daemon doesn't run, until something has come.
  private func runWithoutDaemon(
    _ program: String, _ name: String, until hasCome: (Probe) throws -> Bool
  ) throws {
    let probe = try start([try Fixture.compile(program), name, Fixture.scratch])
    for _ in 0..<10 {
      try probe.perform("trim to image")
      // The first time, everything else that the program needs comes back.
      try probe.talk.send("run")
      let first = try answer(probe)
      if first == "present" { continue }
      try #require(first == "right")
      kill(probe.daemon.pid, SIGSTOP)
      defer { kill(probe.daemon.pid, SIGCONT) }
      try probe.talk.send("run")
      #expect(try eventually { try hasCome(probe) || probe.talk.hasSome })
      kill(probe.daemon.pid, SIGCONT)
      let second = try answer(probe)
      if second == "present" { continue }
      try #require(second == "right")
      #expect(try probe.talk.ask("check") == "whole")
      return
    }
    Issue.record("the memory is always in RAM")
  }

  private func answer(_ probe: Probe) throws -> String {
    while true {
      let line = try probe.talk.line()
      if line != "alarm" { return line }
    }
  }
}
