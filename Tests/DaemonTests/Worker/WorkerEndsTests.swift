import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon
@testable import Lifecycle

@Suite("The ends of workers") struct WorkerEndsTests {
  private let world: AdapterWorld
  private var processes: FakeWorkerProcesses { world.workerProcesses }

  init() throws { world = try AdapterWorld() }

  /// Reports that the root process has ended, and that no process of the worker is left.
  private func end(_ worker: WorkerUnit, lastLines: [String]? = nil) {
    world.ends.rootDidEnd(worker)
    processes.succeed(lastLines: lastLines)
  }

  private func isRecorded(_ name: String = "web") -> Bool {
    world.services.records.drain()
    return world.services.records.store.contains(name)
  }

  @Test func `When a worker has ended, its record, files and run are removed`() throws {
    let worker = try world.add()
    world.recordWriter.save(worker, state: .background)
    #expect(isRecorded())
    let files = [world.state.image(of: "web"), world.state.snapshots + "/web"]
    for file in files { try StateFile.replace(file, with: [1], durability: .none) }
    processes.exit = .exited(3)
    end(worker, lastLines: ["hello", "bye"])
    #expect(!isRecorded())
    #expect(try eventually { files.allSatisfy { access($0, F_OK) != 0 } })
    #expect(world.notes.all == [.exited(worker.id, .exited(3))])
    #expect(world.keptLines == [worker.id: ["hello", "bye"]])
    #expect(worker.process == nil && worker.sleep == nil)
    #expect(world.driver.state.state(of: worker.id) == .terminated)
    #expect(world.workers[worker.id] === worker)
  }

  @Test func `A worker that the engine doesn't know any more is removed at its end`() throws {
    let worker = try world.add()
    world.driver.send(.removed(worker.id))
    end(worker)
    #expect(world.workers[worker.id] == nil)
  }

  @Test func `The end of a worker that was replaced by another concerns nothing`() throws {
    let old = try world.add()
    world.ends.rootDidEnd(old)
    let new = try world.add()
    world.recordWriter.save(new, state: .background)
    processes.succeed()
    #expect(world.notes.all == [] && new.process != nil && isRecorded())
  }

  @Test func `The end of a worker that was freed concerns nothing`() throws {
    var worker: WorkerUnit? = try world.add()
    let ending = WorkerEnding(
      of: try #require(worker), process: try #require(worker?.process), ends: world.ends)
    world.workers.removeAll()
    worker = nil
    ending.terminate()
    ending.rootDidEnd()
    processes.succeed()
    #expect(world.notes.all == [] && world.externalEnds == [] && world.keptLines.isEmpty)
    #expect(processes.begun == ["scan", "clear", "reap", "remove group", "read log"])
  }

  @Test func `Only the last undeclared workers that have ended are still known`() throws {
    for name in ["one", "two", "three"] {
      end(try world.add(name, isDeclared: false))
    }
    // This world keeps two ended workers.
    #expect(Set(world.workers.keys.map(\.name)) == ["two", "three"])
    #expect(world.driver.state.state(of: WorkerID("one")) == nil)
    #expect(world.driver.state.state(of: WorkerID("three")) == .terminated)
  }

  @Test func `The end of a worker that runs is unexpected, unless its end was requested`() throws {
    let left = RemainingProcesses(isEmpty: false, others: 1)
    for isRequested in [false, true] {
      let worker = try world.add(isRequested ? "asked" : "web")
      if isRequested { world.driver.request(.stop, worker.id) { _ in } }
      world.ends.rootDidEnd(worker)
      processes.scanned(left)
      // If the end was requested, the others may save their work, until SIGKILL is sent.
      if isRequested {
        world.ends.kill(worker.id)
        processes.kills.last?(nil)
        processes.scanned(left)
      }
      processes.cleared()
    }
    #expect(processes.begun.count { $0 == "reap" } == 2)
    #expect(world.logged.contains("web: its first process has ended; its 1 other"))
    #expect(!world.logged.contains("asked: its first process has ended"))
  }

  @Test func `Processes that a worker's end has ended are in the answer to its start`() throws {
    let worker = try world.add()
    var answers: [Answer?] = []
    _ = world.restarts.watch(worker.id) { answers.append($0) }
    world.ends.rootDidEnd(worker)
    processes.scanned(RemainingProcesses(isEmpty: false, others: 2))
    processes.cleared()
    world.restarts.record(
      Transition(
        worker: worker.id, from: .background, to: .terminated, cause: .exited(.exited(1)),
        at: world.timers.now))
    let text = answers.last.flatMap(\.self)?.text
    #expect(text?.contains("its other processes were ended with it") == true)
  }

  @Test func `Processes that have left a worker's tree are found by its launch's mark`() throws {
    let worker = try world.add()
    end(worker)
    #expect(processes.marks == [world.planner.mark(of: worker.id)])
  }

  @Test func `When the root process has ended, the loop doesn't watch for that any more`() throws {
    let worker = try world.add()
    let process = try #require(worker.process)
    worker.exitWatch = try world.loop.whenReadable(process.pidfd) {}
    world.ends.rootDidEnd(worker)
    #expect(worker.exitWatch == nil && world.loop.watched.isEmpty)
    // A second report finds no watch.
    world.ends.rootDidEnd(worker)
  }

  @Test func `A cgroup whose next process represents the worker has an end of its own`() throws {
    let worker = try world.add()
    worker.external = ExternalWorker(mayBeTerminated: false)
    world.ends.rootDidEnd(worker)
    processes.scanned()
    #expect(world.externalEnds == [worker.id] && worker.ending == nil)
    // No process is left, so this is the worker's end.
    world.whenExternalRootEnds = { $0.process = nil }
    world.ends.rootDidEnd(worker)
    processes.scanned()
    #expect(world.externalEnds.count == 2 && worker.ending != nil)
  }

  // MARK: requests to end a worker

  @Test func `A worker without a process isn't ended`() throws {
    let worker = try world.add("web", .terminated)
    world.ends.terminate(worker.id)
    world.ends.kill(worker.id)
    world.ends.rootDidEnd(worker)
    world.ends.terminate(WorkerID("unknown"))
    #expect(worker.ending == nil && world.notes.all == [])
  }

  @Test func `Every request to end a run, and its process's end, reach one sequence`() throws {
    let worker = try world.add()
    world.ends.terminate(worker.id, by: SIGABRT)
    #expect(processes.begun == ["ask \(SIGABRT) and wake"])
    let ending = worker.ending
    world.ends.kill(worker.id)
    #expect(processes.begun.last == "kill")
    world.ends.rootDidEnd(worker)
    #expect(worker.hasExited && worker.ending === ending)
  }

  @Test func `The engine is informed of lost channels only if the worker had some`() throws {
    let worker = try world.add()
    world.ends.cleanUp(worker)
    #expect(world.notes.all == [])
    worker.process = try .forTest()
    let peer = try world.connect(worker)
    world.notes.forget()
    world.ends.cleanUp(worker)
    #expect(
      world.notes.all == [.channelsChanged(worker.id, canShed: false, canAnswer: false)])
    // Another thread closes the connection.
    #expect(try eventually { peer.isClosed })
  }
}

@Suite("Ended workers of `run`") struct EndedRunsTests {
  private let world: AdapterWorld
  private let limit = WorkerRegistry().maxEndedRuns

  init() throws {
    world = try AdapterWorld()
    world.workers.maxEndedRuns = limit
  }

  private func end(_ number: Int) throws {
    let id = WorkerID("run\(number)")
    if world.workers[id] == nil { try world.add(id.name, .terminated, isDeclared: false) }
    world.ends.forgetOldRuns(after: id)
  }

  /// The workers among the first two that the registry and the engine still have.
  private var remaining: [String] {
    ["run0", "run1"].filter {
      let remains = world.workers[WorkerID($0)] != nil
      #expect(remains == (world.driver.state.state(of: WorkerID($0)) != nil))
      return remains
    }
  }

  @Test func `The oldest of more than 100 ended undeclared workers are removed`() throws {
    #expect(limit == 100)
    for number in 0..<limit { try end(number) }
    #expect(remaining == ["run0", "run1"])
    // It ends again, and is the latest one now.
    try end(0)
    try end(100)
    #expect(remaining == ["run0"] && world.workers.count == limit)
  }

  @Test func `Ended undeclared workers that run again stay until their next end`() throws {
    for number in 0..<limit { try end(number) }
    world.driver.request(.start, WorkerID("run0")) { _ in }
    try end(100)
    #expect(remaining == ["run0", "run1"])
    world.driver.send(.exited(WorkerID("run0"), .exited(0)))
    try end(0)
    #expect(remaining == ["run0"])
  }

  @Test func `A worker that the configuration has since then isn't removed`() throws {
    for number in 0..<limit { try end(number) }
    world.workers[WorkerID("run0")]?.isDeclared = true
    try end(100)
    #expect(remaining == ["run0", "run1"])
  }
}
