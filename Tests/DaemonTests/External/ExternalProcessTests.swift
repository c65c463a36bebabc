import Control
import DaemonFakes
import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("Processes that are refused before they are adopted") struct ExternalProcessTests {
  private func refusal(_ wanted: AdoptionSpecification) -> AdoptionRefusal? {
    do throws(AdoptionRefusal) {
      _ = try ExternalProcess.examine(wanted)
      return nil
    } catch { return error }
  }

  @Test func `What isn't one other process or cgroup that exists is refused`() {
    let unclear = "`adopt` needs either a pid or a cgroup"
    var refused = [
      (AdoptionSpecification(), unclear),
      (AdoptionSpecification(pid: getpid(), cgroup: "system.slice"), unclear),
      // The kernel's maximum pid is 2²² − 1.
      (AdoptionSpecification(pid: 1 << 22), "there is no process 4194304"),
    ]
    for pid: Int32 in [1, 0, -1, .min] {
      refused.append((AdoptionSpecification(pid: pid), "pid \(pid) can't be adopted"))
    }
    for pid in [getpid(), getppid()] where pid > 1 {
      refused.append((AdoptionSpecification(pid: pid), "is the daemon or one of its parents"))
    }
    for name in ["/no/such/group.here", "/proc/nowhere", "no such.unit"] {
      refused.append((AdoptionSpecification(cgroup: name), "there is no cgroup"))
    }
    for (wanted, text) in refused {
      let refusal = refusal(wanted)
      #expect(refusal?.text.contains(text) == true, "\(wanted): \(refusal?.text ?? "none")")
      #expect(refusal?.isMalformed == (text == unclear))
    }
  }

  @Test func `A process that has got the number of the one that was meant is refused`() throws {
    let child = try SpawnedProcess.forTest()
    defer { child.endForTest() }
    let (pid, start) = (child.pid, child.startTime)
    let later = AdoptionSpecification(pid: pid, startTime: start + 1)
    #expect(refusal(later)?.text.contains("was started at another time") == true)
    for start in [start, nil] {
      #expect(refusal(AdoptionSpecification(pid: pid, startTime: start)) == nil)
    }
    sendSignal(SIGSTOP, to: pid)
    let isRefused = try eventually {
      refusal(AdoptionSpecification(pid: pid))?.text.contains("is stopped") == true
    }
    #expect(isRefused)
  }

  @Test func `A process that another program has frozen is refused until it is thawed`() throws {
    guard let root = try? CgroupRoot.detect(name: "dormouse-test-\(getpid())-frozen") else {
      return notTestedHere("no cgroup for workers can be made here")
    }
    defer { root.remove() }
    let group = try WorkerCgroup.create(in: root, name: "frozen")
    let child = try SpawnedProcess.forTest()
    defer {
      child.endForTest()
      try? group.remove(until: Deadline(in: .seconds(60)))
    }
    try group.add(child.pid)
    try group.freeze(until: Deadline(in: .seconds(60)))
    let reason = refusal(AdoptionSpecification(pid: child.pid))?.text
    #expect(reason?.contains("is frozen") == true, "\(reason ?? "none")")
    try group.thaw(until: Deadline(in: .seconds(60)))
    #expect(refusal(AdoptionSpecification(pid: child.pid)) == nil)
  }

  @Test func `A process with a watchdog of systemd, which would end it, is refused`() throws {
    let child = try SpawnedProcess.forTest(["/bin/sleep", "1000"], ["WATCHDOG_USEC": "30000000"])
    defer { child.endForTest() }
    // The environment is there when the program has been executed.
    let isRefused = try eventually {
      refusal(AdoptionSpecification(pid: child.pid))?.text.contains("WatchdogSec=") == true
    }
    #expect(isRefused)
  }
}
