import Glibc
import Linux
import Supervision
import Testing

@testable import Daemon

@Suite("Processes that are attached to workers") struct ProcessHolderTests {
  private let world: AdapterWorld
  private let holder: ProcessHolder
  private var loop: FakeLoop { world.loop }
  private var begun: [String] { world.workerProcesses.begun }

  init() throws {
    world = try AdapterWorld()
    holder = ProcessHolder(
      loop: world.loop, jobs: world.services.jobs, processes: FakeProcesses(),
      probes: world.senses.probes, sleeps: world.sleeps, ends: world.ends)
  }

  @Test func `A new run has a sleep, a watch of its readiness, and one of its end`() throws {
    let worker = WorkerUnit.forTest("web") { $0.readiness = .notify }
    let process = try WorkerProcess.forTest()
    try holder.attach(process, to: worker)
    #expect(worker.process === process && worker.sleep != nil && worker.readiness != nil)
    #expect(worker.exitWatch != nil)
    #expect(loop.watched.count == 1 && loop.watched[0].descriptor === process.pidfd)
    loop.fire()
    #expect(begun == ["scan"] && worker.hasExited && loop.watched.isEmpty)
  }

  @Test func `Another process of the same run continues the worker's sleep`() throws {
    let worker = WorkerUnit.forTest("web")
    try holder.attach(try .forTest(), to: worker)
    let sleep = worker.sleep
    try holder.attach(try .forTest(), to: worker)
    #expect(sleep != nil && worker.sleep === sleep)
  }

  @Test func `An adopted run is also one whose earlier kills by the kernel don't count`() throws {
    try world.scratch.write("group/cgroup.events", "")
    try world.scratch.write("group/memory.events", "oom_kill 3\n")
    let group = try WorkerCgroup(path: world.scratch.path + "/group")
    let (new, adopted) = (WorkerUnit.forTest("new"), WorkerUnit.forTest("web"))
    try holder.attach(try .forTest("new", in: group), to: new)
    try holder.adopt(try .forTest("web", in: group), as: adopted)
    #expect(adopted.exitWatch != nil && adopted.readiness == nil)
    let kills = world.senses.kernelKills
    #expect(kills.status(.signaled(SIGKILL), of: new) == .outOfMemory)
    #expect(kills.status(.signaled(SIGKILL), of: adopted) == .signaled(SIGKILL))
  }

  @Test func `The end of a process whose worker has been removed concerns nothing`() throws {
    var worker: WorkerUnit? = .forTest("web")
    if let worker { try holder.attach(try .forTest(), to: worker) }
    worker = nil
    loop.fire()
    #expect(begun.isEmpty)
  }

  @Test func `Memory that was opened for a process reaches that process alone`() throws {
    let worker = WorkerUnit.forTest("web")
    holder.refreshMemory(of: worker)
    #expect(begun.isEmpty, "it has no process")
    try holder.attach(try .forTest(), to: worker)
    holder.refreshMemory(of: worker)
    #expect(begun == ["open memory"])
    worker.endRun(loop)
    let opened = try WorkerProcess.forTest().memoryRefresh.perform()
    world.workerProcesses.opened.first?(opened)
    #expect(worker.process == nil)
  }
}
