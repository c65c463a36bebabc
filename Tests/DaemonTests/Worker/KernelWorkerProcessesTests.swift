import Control
import DaemonFakes
import Glibc
import Linux
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("Operations on the processes of workers") struct KernelWorkerProcessesTests {
  private let world: AdapterWorld
  private let processes: KernelWorkerProcesses

  init() throws {
    world = try AdapterWorld()
    processes = KernelWorkerProcesses(
      services: world.services, state: world.state, scanner: world.senses.scanner)
  }

  @Test func `A process is found, asked, killed, and reaped`() throws {
    let child = try SpawnedProcess.forTest()
    let process = try WorkerProcess.forTest(child.identity)
    var left: RemainingProcesses?
    processes.findRemainingProcesses(of: process) { left = $0 }
    try world.turn { left != nil }
    #expect(left == RemainingProcesses(isEmpty: false, others: 0))
    // This signal has no effect on the process.
    processes.ask(process, of: "web", by: SIGCONT)
    var failures: [String?] = []
    processes.kill(process, of: "web") { failures.append($0) }
    try world.turn { failures.count == 1 }
    #expect(failures == [nil])
    try #require(try eventually { process.life == .hasEnded })
    var outcome: Clearing?
    processes.clear(process, of: "web", mark: "none", notify: nil) { outcome = $0 }
    try world.turn { outcome != nil }
    #expect(outcome == Clearing())
    #expect(processes.reap(process, of: "web") == .signaled(SIGKILL))
    // The process has been reaped already.
    #expect(processes.reap(process, of: "web") == .unknown)
  }

  /// The files of a cgroup that no process is in: its worker's processes have left it.
  private func leftGroup() throws -> WorkerCgroup {
    try world.scratch.write("group/cgroup.events", "populated 0\n")
    return try WorkerCgroup(path: world.scratch.path + "/group")
  }

  @Test func `A stop signal reaches a worker's first process in another cgroup`() throws {
    let child = try SpawnedProcess.forTest()
    defer { child.endForTest() }
    let process = try WorkerProcess.forTest(child.identity, in: leftGroup())
    processes.ask(process, of: "web", by: SIGTERM)
    #expect(try eventually { process.life == .hasEnded })
  }

  @Test func `Processes that have left their worker's cgroup are ended after the worker`() throws {
    let child = try SpawnedProcess.forTest()
    defer { child.endForTest() }
    let orphans = FakeProcesses { $0.add(51, at: .max) }
    var services = world.services
    services.processes = orphans
    let processes = KernelWorkerProcesses(
      services: services, state: world.state, scanner: world.senses.scanner)
    let process = try WorkerProcess.forTest(child.identity, in: leftGroup())
    var outcome: Clearing?
    processes.clear(process, of: "web", mark: "mark", notify: nil) { outcome = $0 }
    try world.turn { outcome != nil }
    #expect(outcome == Clearing(escaped: 1) && orphans.killed == [51])
    #expect(try eventually { process.life == .hasEnded })
  }

  @Test func `A worker without a cgroup and a log has its end reported later`() throws {
    let process = try WorkerProcess.forTest()
    var outcomes: [String?] = []
    processes.removeGroup(of: process, "web") { outcomes.append($0) }
    processes.readLastLines(of: process, "web") { outcomes.append($0?.last) }
    try world.turn { outcomes.count == 2 }
    #expect(outcomes == [nil, nil])
  }

  // MARK: processes of other supervisors

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

  @Test func `A process is examined on another thread, and its refusal comes back`() throws {
    let daemon = try examine(AdoptionSpecification(pid: getpid()))
    #expect(daemon.text.contains("is the daemon or one of its parents"))
  }

  @Test func `A policy of a request for adoption is looked up before the process`() throws {
    let refusal = try examine(AdoptionSpecification(pid: 1, policy: "sever"))
    #expect(refusal.isMalformed)
    #expect(
      refusal.text.hasPrefix("web isn't adopted: `policy=sever`: there is no policy named"),
      "\(refusal.text)")
  }
}
