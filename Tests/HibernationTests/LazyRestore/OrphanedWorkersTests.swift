import CLinux
import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// What the standby pager does for trimmed workers whose daemon was killed.
@Suite(.serialized, .needsUserfaults)
struct OrphanedWorkersTests {
  private let lock: Descriptor
  private var lockPath: String { readLink("/proc/self/fd/\(lock.raw)") ?? "" }

  init() throws { lock = try Descriptor.open(Fixture.imagePath() + ".lock", O_RDWR | O_CREAT) }

  private func start(variables: [String: String] = [:]) throws -> Probe {
    let probe = try Probe(
      [try Fixture.compile("missing_writes"), "pump", Fixture.scratch], parking: .frozen,
      hasStandby: true, lock: lockPath, variables: variables)
    try probe.perform("trim to image")
    return probe
  }

  /// A thread of the daemon waits for the pipe's lock, which the worker's thread has while it waits
  /// for its page: only the pager can end that.
  @Test func `A worker runs on although its killed daemon waits for it and can't end`() throws {
    for round in 0..<8 {
      let probe = try start(variables: ["DORMOUSE_COUNTS": "1"])
      try probe.talk.send("run")
      // Each round kills it at another moment of the 1,024 writes.
      usleep(UInt32(2000 + 1000 * round))
      kill(probe.daemon.pid, SIGKILL)
      try #require(try probe.talk.line() == "right")
      try probe.daemonDies()
      try #require(try probe.talk.ask("check") == "whole")
    }
  }

  /// The next daemon looks for pages in RAM, and finds those of the one where the other's were.
  @Test func `Memory that two threads move while there is no daemon keeps its contents`() throws {
    let probe = try Probe(
      [try Fixture.compile("missing_moves"), "exchange", Fixture.scratch], parking: .frozen)
    try probe.perform("trim to image")
    try #require(try probe.talk.ask("run") == "right")
    try probe.daemonDies(by: SIGKILL)
    try probe.talk.send("run")
    let (target, image, pid) = (probe.target, probe.image, probe.victim.pid)
    try #require(
      try eventually {
        try threads(of: pid).count {
          let call = try? WaitingCall.current(thread: $0, of: pid)
          return call.map { clinux_is_mremap($0.number) == 1 } ?? false
        } == 2
      })
    let service = HibernationService()
    try service.recover(target, from: image, keepsTrims: true)
    #expect(try probe.talk.line() == "right")
    #expect(try probe.talk.ask("check") == "whole")
    try service.fill(target)
  }

  @Test func `A worker of which only the image is known gets its missing pages`() throws {
    let probe = try Probe(
      [try Fixture.compile("missing_writes"), "pump", Fixture.scratch], parking: .frozen)
    let group = try #require(probe.cgroup)
    let name = try #require(group.path.split(separator: "/").last?.dropFirst("worker-".count))
    #expect(Hibernator.runningWorker(String(name), missing: probe.image) == nil)
    try probe.perform("trim to image")
    try probe.daemonDies(by: SIGKILL)
    #expect(Hibernator.runningWorker("another", missing: probe.image) == nil)
    // A suspended worker needs no page.
    try group.freeze(until: Deadline(in: .seconds(Talk.timeout)))
    #expect(Hibernator.runningWorker(String(name), missing: probe.image) == nil)
    try group.thaw(until: Deadline(in: .seconds(Talk.timeout)))
    let target = try #require(Hibernator.runningWorker(String(name), missing: probe.image))
    #expect(target.root == probe.victim && target.cgroup?.path == group.path)
    let service = HibernationService()
    try service.recover(target, from: probe.image, keepsTrims: true)
    #expect(try probe.talk.ask("run") == "right")
    #expect(try probe.talk.ask("check") == "whole")
    try service.fill(target)
  }

  @Test func `A worker runs on when no process reads the standby pager's report`() throws {
    let probe = try start()
    try probe.reports.close()
    try probe.daemonDies(by: SIGKILL)
    #expect(try probe.talk.ask("run") == "right")
    #expect(try probe.talk.ask("check") == "whole")
  }

  @Test func `A standby pager may open more files than its daemon could at first`() throws {
    let command = "ulimit -Sn 64; exec \(Probe.executable) pager \(lockPath)"
    let pager = try StandbyPagerConnection(command: ["/bin/sh", "-c", command])
    defer { kill(pager.process.pid, SIGKILL) }
    let isRaised = try eventually {
      // The shell has the test's limits until it lowers one.
      guard try ProcessStat.read(pager.process.pid).name == "HibernateProbe" else { return false }
      let limits = try readText("/proc/\(pager.process.pid)/limits").split(separator: "\n")
      let line = limits.first { $0.hasPrefix("Max open files") }?.split(separator: " ") ?? []
      return line.count > 4 && line[3] == line[4] && line[3] != "64"
    }
    #expect(isRaised)
    #expect(!pager.hasEnded())
  }
}
