import Control
import DaemonFakes
import Glibc
import Lifecycle
import Linux
import PolicyFile
import TestSupport
import Testing

@testable import Daemon

@Suite("Looks at processes of another supervisor") struct ExternalLooksTests {
  private let world: AdapterWorld
  private let processes: KernelWorkerProcesses

  init() throws {
    world = try AdapterWorld()
    processes = KernelWorkerProcesses(
      services: world.services, state: world.state, scanner: world.senses.scanner)
  }

  @Test func `A process that belongs to a worker has that worker as its owner`() throws {
    #expect(world.workers.owner(of: getpid()) == nil)
    try world.add("db", .terminated)
    try world.add("web")
    #expect(world.workers.owner(of: getpid()) == WorkerID("web"))
    #expect(world.workers.owner(of: 1) == nil)
  }

  private func examine(_ wanted: AdoptionSpecification) throws -> AdoptionRefusal {
    var outcomes: [JobOutcome<Result<ExternalProcess, AdoptionRefusal>>] = []
    processes.examine(wanted, as: "web", in: .builtIn, within: .seconds(60)) {
      outcomes.append($0)
    }
    #expect(outcomes.isEmpty)
    try world.turn { !outcomes.isEmpty }
    guard outcomes.count == 1, case .done(.failure(let refusal)) = outcomes[0] else {
      throw TestFailure("\(outcomes)")
    }
    return refusal
  }

  @Test("A process is examined on another thread, and a refusal comes back with its reason")
  func examined() throws {
    let daemon = try examine(AdoptionSpecification(pid: getpid()))
    #expect(daemon.text.contains("is the daemon or one of its parents"))
    #expect(try examine(AdoptionSpecification(pid: 1)).text == "pid 1 can't be adopted")
    #expect(
      try examine(AdoptionSpecification()).text == "`adopt` needs either a pid or a cgroup")
  }

  @Test("A policy that a request for adoption names is looked up before any process is examined")
  func named() throws {
    let refusal = try examine(AdoptionSpecification(pid: 1, policy: "sever"))
    #expect(refusal.isMalformed)
    #expect(
      refusal.text.hasPrefix("web isn't adopted: `policy=sever`: there is no policy named"),
      "\(refusal.text)")
  }
}

@Suite("Processes that are refused before they are adopted") struct ExternalProcessTests {
  private func refusal(_ wanted: AdoptionSpecification) -> AdoptionRefusal? {
    do throws(AdoptionRefusal) {
      _ = try ExternalProcess.examine(wanted)
      return nil
    } catch { return error }
  }

  @Test func `A request with neither a pid nor a cgroup, or with both, makes no sense`() {
    for wanted in [
      AdoptionSpecification(), AdoptionSpecification(pid: getpid(), cgroup: "system.slice"),
    ] {
      #expect(refusal(wanted)?.isMalformed == true)
    }
  }

  @Test func `The system's first process, and numbers that are none, are refused`() {
    for pid: Int32 in [1, 0, -1, .min] {
      let refusal = refusal(AdoptionSpecification(pid: pid))
      #expect(refusal?.text == "pid \(pid) can't be adopted" && refusal?.isMalformed == false)
    }
    // The kernel's maximum pid is 2²² − 1.
    #expect(refusal(AdoptionSpecification(pid: 1 << 22))?.text == "there is no process 4194304")
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

  @Test("A process with a systemd watchdog, which would end it while it sleeps, is refused")
  func watchdog() throws {
    let child = try SpawnedProcess.forTest(["/bin/sleep", "1000"], ["WATCHDOG_USEC": "30000000"])
    defer { child.endForTest() }
    // The environment is there when the program has been executed.
    let isRefused = try eventually {
      refusal(AdoptionSpecification(pid: child.pid))?.text.contains("WatchdogSec=") == true
    }
    #expect(isRefused)
  }

  @Test func `The daemon itself, and what it lives in, never sleep`() {
    for pid in [getpid(), getppid()] where pid > 1 {
      #expect(
        refusal(AdoptionSpecification(pid: pid))?.text
          .contains("is the daemon or one of its parents") == true)
    }
  }

  @Test func `A cgroup that doesn't exist is refused with its name`() {
    for name in ["/no/such/group.here", "/proc/nowhere", "no such.unit"] {
      let text = refusal(AdoptionSpecification(cgroup: name))?.text
      #expect(text?.contains("there is no cgroup") == true, "\(name): \(text ?? "none")")
    }
  }
}
