import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import Testing

@testable import Daemon

@Suite("Processes that the daemon holds") struct ProcessHolderTests {
  private final class Host: ProcessHost {
    private(set) var calls: [String] = []
    private(set) var opened: [(MemoryRefresh.Outcome) -> Void] = []

    func makeSleep(for runtime: WorkerUnit) { calls.append("sleep of \(runtime.id)") }
    func rootHasEnded(_ runtime: WorkerUnit) { calls.append("end of \(runtime.id)") }
    func isAdopted(_ runtime: WorkerUnit) { calls.append("kills of \(runtime.id) so far") }
    func open(
      _ refresh: MemoryRefresh, of id: WorkerID, then: @escaping (MemoryRefresh.Outcome) -> Void
    ) {
      calls.append("memory of \(id)")
      opened.append(then)
    }
  }

  private let loop = FakeLoop()
  private let host = Host()
  private let holder: ProcessHolder

  private let world: AdapterWorld

  init() throws {
    world = try AdapterWorld()
    holder = ProcessHolder(
      loop: loop, jobs: world.services.jobs, processes: FakeProcesses(),
      probes: world.senses.probes, driver: world.driver, log: world.log, host: host)
  }

  @Test("A new run has a sleep, a watch of its readiness, and one of its end")
  func attached() throws {
    let runtime = WorkerUnit.forTest("web") { $0.readiness = .notify }
    let process = try WorkerProcess.forTest()
    try holder.attach(process, to: runtime)
    #expect(host.calls == ["sleep of web"])
    #expect(runtime.process === process && runtime.readiness != nil && runtime.exitWatch != nil)
    #expect(loop.watched.count == 1 && loop.watched[0].descriptor === process.pidfd)
    loop.watched[0].handler(.readable)
    #expect(host.calls.last == "end of web")
  }

  @Test("An adopted run is also one whose earlier kills by the kernel don't count")
  func adopted() throws {
    let runtime = WorkerUnit.forTest("web")
    try holder.adopt(try .forTest(), as: runtime)
    #expect(host.calls == ["sleep of web", "kills of web so far"])
    #expect(runtime.exitWatch != nil && runtime.readiness == nil)
  }

  @Test("The end of a process whose worker has been removed concerns nothing")
  func removed() throws {
    var runtime: WorkerUnit? = .forTest("web")
    if let runtime { try holder.attach(try .forTest(), to: runtime) }
    runtime = nil
    loop.watched[0].handler(.readable)
    #expect(host.calls == ["sleep of web"])
  }

  @Test("Memory that was opened for a process reaches that process alone")
  func memory() throws {
    let runtime = WorkerUnit.forTest("web")
    holder.refreshMemory(of: runtime)
    #expect(host.calls.isEmpty, "it has no process")
    try holder.attach(try .forTest(), to: runtime)
    holder.refreshMemory(of: runtime)
    #expect(host.calls.last == "memory of web")
    runtime.endRun()
    let opened = try WorkerProcess.forTest().memoryRefresh.perform()
    host.opened[0](opened)
    #expect(runtime.process == nil)
  }
}
