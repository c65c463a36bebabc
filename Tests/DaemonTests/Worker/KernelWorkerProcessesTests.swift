import DaemonFakes
import Glibc
import Linux
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("Operations on the processes of a worker that ends")
struct KernelWorkerProcessesTests {
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

  @Test func `The status of a process that isn't the daemon's child is unknown`() throws {
    #expect(processes.reap(try .forTest(), of: "web") == .unknown)
  }

  @Test("A worker without a cgroup and without a log has its end reported later, with nothing")
  func nothingToDo() throws {
    let process = try WorkerProcess.forTest()
    var outcomes: [String?] = []
    processes.removeGroup(of: process, "web") { outcomes.append($0) }
    processes.readLastLines(of: process, "web") { outcomes.append($0?.last) }
    try world.turn { outcomes.count == 2 }
    #expect(outcomes == [nil, nil])
  }
}
