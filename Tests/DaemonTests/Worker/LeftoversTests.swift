import DaemonFakes
import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon
@testable import Supervision

@Suite("Processes that an earlier instance of a worker has left") struct LeftoversTests {
  private let scratch: Scratch
  private let records: WorkerRecordStore
  private let processes = FakeProcesses()

  init() throws {
    scratch = try Scratch()
    records = try WorkerRecordStore(directory: scratch.path)
  }

  private func refusal(_ name: String = "web") -> String? {
    Leftovers(records: records, logs: "/logs", processes: processes).refusal(ofLaunching: name)
  }

  private func damage(_ name: String = "web") throws {
    try scratch.write("\(name).worker", "damaged")
  }

  @Test func `A worker of which nothing is left can be launched`() throws {
    #expect(refusal() == nil)
    try damage()
    #expect(refusal() == nil)
  }

  @Test func `A worker whose cgroup has processes isn't launched until they are ended`() {
    processes.set { $0.groups["web"] = [41, 7, 300] }
    #expect(
      refusal()
        == "3 processes of an earlier instance still run without a valid record: "
        + "run `kill -9 7 41 300`, then `dormouse start web`")
    processes.set { $0.groups["web"] = [41] }
    #expect(refusal()?.hasPrefix("1 process of an earlier instance still runs") == true)
    #expect(refusal("api") == nil)
  }

  @Test func `A command that the operator can type names twenty processes at most`() {
    processes.set { $0.groups["web"] = Array(1...100) }
    let text = refusal() ?? ""
    #expect(text.hasPrefix("100 processes") && text.contains(" 19 20`") && !text.contains(" 21"))
  }

  @Test func `Without cgroups, leftovers are found by the log if the record is damaged`() throws {
    processes.set { $0.logs["/logs/web.log"] = [41] }
    #expect(refusal() == nil && processes.askedLogs == [], "it has no record: nothing was lost")
    try records.save(
      WorkerRecord(
        name: "web", process: ProcessIdentity(pid: 41, startTime: 1), session: 41, bootID: "boot",
        command: ["web"], directory: "/", logPath: "/logs/web.log", state: "background"))
    #expect(refusal() == nil && processes.askedLogs == [], "its record is valid: it was adopted")
    try damage()
    #expect(refusal()?.contains("`kill -9 41`") == true && processes.askedLogs == ["/logs/web.log"])
  }

  @Test func `A cgroup whose processes can't be listed prevents a launch as well`() {
    processes.set { $0.groups["web"] = [] }
    #expect(
      refusal()
        == "processes of an earlier instance still run without a valid record in /groups/web: "
        + "run `echo 1 > /groups/web/cgroup.kill`, then `dormouse start web`")
  }

  @Test func `A user that doesn't exist, and leftovers, end a launch before it makes a cgroup`() {
    func perform(_ name: String, leftovers: Bool = true, user: String? = nil) -> String? {
      let query = TermsQuery(
        name: name, wanted: WantedAccount(.forTest(name) { $0.user = user }),
        leftovers: leftovers
          ? Leftovers(records: records, logs: "/logs", processes: processes) : nil,
        cgroups: nil, memoryLimit: nil)
      if case .failure(let refusal) = query.perform() { return refusal.text }
      return nil
    }
    processes.set { $0.groups["web"] = [41] }
    #expect(perform("web")?.contains("`kill -9 41`") == true)
    #expect(perform("api") == nil)
    #expect(perform("api", user: "no-such-user-here")?.contains("no-such-user-here") == true)
    // A wrapped program runs as its caller does.
    #expect(perform("web", leftovers: false, user: "no-such-user-here") == nil)
  }

  @Test func `A name service that doesn't answer is named only where it was asked`() {
    let ours = WantedAccount(.forTest("web"))
    let other = WantedAccount(
      .forTest("web") {
        $0.user = "www"
        $0.group = "adm"
      })
    #expect(ours.isOurs && !other.isOurs)
    #expect(
      ours.timeoutText(.seconds(10))
        == "can't look for processes of an earlier instance within 10 s")
    #expect(
      other.timeoutText(.seconds(10))
        == "can't look up user www, group adm within 10 s: "
        + "check the name service (nsswitch.conf(5))"
    )
    #expect(ours.stillWaitingText.hasPrefix("an earlier launch still looks for processes"))
    #expect(other.stillWaitingText.hasSuffix("to find user www, group adm"))
  }
}

@Suite("Processes that have left their worker's tree") struct EscapedDescendantsTests {
  private let children = FakeProcesses()

  private func kill(
    notify: String? = nil, within limit: Duration = .seconds(60)
  ) -> Clearing {
    EscapedDescendants(
      root: ProcessIdentity(pid: 50, startTime: 90), mark: "mark", notify: notify,
      processes: children
    ).kill(within: limit)
  }

  @Test func `Only children with the worker's mark that are younger than its root are ended`() {
    children.set {
      $0.add(51)
      $0.add(52, "DORMOUSE_RUN=mark2")
      $0.add(53, "XDORMOUSE_RUN=mark")
      $0.add(54, "NOTIFY_SOCKET=/run/web.notify")
      $0.add(55)
      $0.environments[55] = []
      $0.add(56, at: 89)
      $0.add(57, at: 90)
      // The root process itself isn't reaped yet.
      $0.add(50, at: 90)
    }
    let outcome = kill()
    #expect(outcome.escaped == 2 && outcome.failure == nil && children.killed == [51, 57])
  }

  @Test func `A wrapper that the worker started ends its program by itself`() {
    children.set {
      $0.add(51)
      $0.add(52)
      $0.orphans[1].name = WrapperTree.processName
    }
    #expect(kill().escaped == 1 && children.killed == [51])
  }

  @Test func `Processes in cgroups of other workers aren't touched`() throws {
    guard let root = try? CgroupRoot.detect(name: "dormouse-test-\(getpid())-escaped") else {
      return notTestedHere("no cgroup for workers can be made here")
    }
    defer { root.remove() }
    let group = try WorkerCgroup.create(in: root, name: "other")
    let child = try SpawnedProcess.forTest()
    defer {
      child.endForTest()
      try? group.remove(until: Deadline(in: .seconds(60)))
    }
    try group.add(child.pid)
    children.set { [pid = child.pid] in $0.add(pid) }
    let search = EscapedDescendants(
      root: ProcessIdentity(pid: 50, startTime: 90), mark: "mark", notify: nil, cgroup: group,
      processes: children)
    #expect(search.kill(within: .seconds(60)).escaped == 0)
    #expect(kill().escaped == 1, "it has the mark")
  }

  @Test func `A process of an earlier version's worker is known by its notify socket`() {
    children.set { $0.add(51, "NOTIFY_SOCKET=/run/web.notify") }
    #expect(kill().escaped == 0)
    #expect(kill(notify: "/run/web.notify").escaped == 1)
  }

  @Test func `A process that becomes the daemon's child when its parent ends is ended, too`() {
    children.set {
      $0.add(51)
      $0.childrenOf = [51: [61, 62], 62: [71]]
    }
    let outcome = kill()
    #expect(outcome.escaped == 4 && outcome.failure == nil)
    #expect(children.killed == [51, 61, 62, 71])
  }

  @Test func `A process that can't be killed is tried once, and doesn't protect others`() {
    children.set {
      $0.add(51)
      $0.add(52)
      $0.refusals = [51: EPERM]
    }
    let outcome = kill()
    #expect(children.killed == [51, 52])
    #expect(outcome.failure?.contains("pid 51") == true)
  }

  @Test func `Processes that fork without end are given up at the deadline`() throws {
    children.set {
      $0.add(51)
      $0.forks = true
    }
    let outcome = kill(within: .milliseconds(20))
    let failure = try #require(outcome.failure)
    #expect(failure.hasPrefix("after 20 ms, processes that have left its tree were still found"))
    #expect(failure.contains("killed: \(outcome.escaped)); others may run"))
    #expect(outcome.escaped > 0 && outcome.escaped == children.killed.count)
  }

  @Test func `Processes that are found after the deadline are killed, and reported`() {
    children.set {
      $0.add(51)
      $0.add(52)
      $0.refusals = [51: EPERM]
      $0.childrenOf = [52: [61]]
    }
    let outcome = kill(within: .zero)
    #expect(outcome.escaped == 2 && children.killed == [51, 52], "no second look")
    #expect(outcome.failure?.contains("were still found (looks: 1, killed: 2)") == true)
  }

  @Test func `A deadline that has passed is no failure when nothing is found`() {
    children.set { $0.add(51, "DORMOUSE_RUN=mark2") }
    let outcome = kill(within: .zero)
    #expect(outcome.escaped == 0 && outcome.failure == nil && children.killed == [])
  }
}

@Suite("Orphans of workers") struct OrphanReaperTests {
  private let timers = FakeLoop()
  private let children = FakeProcesses()

  private func reaper(owned: Set<Int32> = []) -> OrphanReaper {
    OrphanReaper(timers: timers, processes: children) { owned }
  }

  @Test func `Orphans are reaped when they have ended, and children with an owner aren't`() {
    children.set { ($0.children, $0.running) = ([10, 11, 12, 13], [13]) }
    reaper(owned: [11]).reapOrphans()
    #expect(children.reaped == [10, 12] && timers.pending.isEmpty)
  }

  @Test func `A child that may be in the middle of a fork is reaped a moment later`() {
    children.set { ($0.children, $0.anyChildIsUnclaimed) = ([10], true) }
    let reaper = reaper()
    for _ in 0..<3 { reaper.reapOrphans() }
    #expect(children.reaped.isEmpty)
    #expect(timers.pending == [OrphanReaper.interval], "there is one timer")
    children.set { $0.anyChildIsUnclaimed = false }
    timers.advance(by: OrphanReaper.interval)
    #expect(children.reaped == [10] && timers.pending.isEmpty)
  }
}
