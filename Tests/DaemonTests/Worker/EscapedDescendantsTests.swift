import DaemonFakes
import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon

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

  @Test func `A child of the daemon with the worker's mark in its environment is ended`() {
    children.set { $0.add(51) }
    let outcome = kill()
    #expect(outcome.escaped == 1 && outcome.failure == nil && children.killed == [51])
  }

  @Test func `Children of other workers, and of none, aren't touched`() {
    children.set {
      $0.add(51, "DORMOUSE_RUN=mark2")
      $0.add(52, "XDORMOUSE_RUN=mark")
      $0.add(53, "NOTIFY_SOCKET=/run/web.notify")
      $0.add(54)
      $0.environments[54] = []
    }
    #expect(kill().escaped == 0 && children.killed == [])
  }

  @Test func `If the worker has a cgroup, the processes of other workers' cgroups aren't touched`()
    throws
  {
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

  @Test("A process that is older than the worker isn't the worker's, whatever its environment has")
  func older() {
    children.set {
      $0.add(51, at: 89)
      $0.add(52, at: 90)
    }
    #expect(kill().escaped == 1 && children.killed == [52])
  }

  @Test func `The root process itself, which isn't reaped yet, isn't counted`() {
    children.set { $0.add(50, at: 90) }
    #expect(kill().escaped == 0 && children.killed == [])
  }

  @Test func `A process of an earlier version's worker is known by its notify socket`() {
    children.set { $0.add(51, "NOTIFY_SOCKET=/run/web.notify") }
    #expect(kill().escaped == 0)
    #expect(kill(notify: "/run/web.notify").escaped == 1)
  }

  @Test("A process that becomes the daemon's child when its parent is ended is ended as well")
  func generations() {
    children.set {
      $0.add(51)
      $0.childrenOf = [51: [61, 62], 62: [71]]
    }
    let outcome = kill()
    #expect(outcome.escaped == 4 && outcome.failure == nil)
    #expect(children.killed == [51, 61, 62, 71])
  }

  @Test("A process that can't be killed is tried once, reported, and doesn't protect the others")
  func refused() {
    children.set {
      $0.add(51)
      $0.add(52)
      $0.refusals = [51: EPERM]
    }
    let outcome = kill()
    #expect(children.killed == [51, 52])
    #expect(outcome.failure?.contains("pid 51") == true)
  }

  @Test("Processes that fork without end are given up at the deadline, and that is reported")
  func storm() throws {
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

  @Test("Processes that are found after the deadline are killed, and the failure reports that")
  func late() {
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
