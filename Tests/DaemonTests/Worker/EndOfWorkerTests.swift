import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("What the end of a worker does in the daemon") struct EndOfWorkerTests {
  private let world: AdapterWorld

  init() throws { world = try AdapterWorld() }

  private func end(of runtime: WorkerUnit) throws -> EndOfWorker {
    EndOfWorker(
      worker: world.handle(runtime), process: try #require(runtime.process), ends: world.ends)
  }

  private func isRecorded(_ name: String = "web") -> Bool {
    world.services.records.drain()
    return world.services.records.store.contains(name)
  }

  @Test(
    "When nothing of a worker is left, the engine gets its end, and its record, its files and its run are removed"
  )
  func gone() throws {
    let runtime = try world.add()
    world.recordWriter.save(runtime, state: .background)
    #expect(isRecorded())
    let files = [world.state.image(of: "web"), world.state.snapshots + "/web"]
    for file in files { try StateFile.replace(file, with: [1], durability: .none) }
    try end(of: runtime).isGone(.exited(3), lastLines: ["hello", "bye"])
    #expect(!isRecorded())
    #expect(try eventually { files.allSatisfy { access($0, F_OK) != 0 } })
    #expect(world.notes.all == [.exited(runtime.id, .exited(3))])
    #expect(world.keptLines == [runtime.id: ["hello", "bye"]])
    #expect(runtime.process == nil && runtime.sleep == nil)
    #expect(world.driver.state.state(of: runtime.id) == .terminated)
    #expect(world.workers[runtime.id] === runtime)
  }

  @Test("A worker that the engine doesn't know any more is removed at its end")
  func undeclared() throws {
    let runtime = try world.add()
    world.driver.send(.removed(runtime.id))
    try end(of: runtime).isGone(.exited(0), lastLines: nil)
    #expect(world.workers[runtime.id] == nil)
  }

  @Test("The end of a worker that was replaced by another of its name concerns nothing")
  func replaced() throws {
    let old = try world.add()
    let end = try end(of: old)
    let new = try world.add()
    world.recordWriter.save(new, state: .background)
    end.isGone(.exited(0), lastLines: nil)
    #expect(world.notes.all == [] && new.process != nil && isRecorded())
  }

  @Test("The end of a worker that was freed concerns nothing")
  func freed() throws {
    var runtime: WorkerUnit? = try world.add()
    let end = try end(of: #require(runtime))
    world.workers.removeAll()
    runtime = nil
    end.isGone(.exited(0), lastLines: nil)
    end.rootHasEnded()
    end.externalRootHasEnded()
    #expect(world.notes.all == [] && world.externalEnds == [])
    #expect(end.stopSignal == SIGTERM && !end.isActedOn && !end.isMemoryUnverified)
    #expect(!end.isExternal && !end.announceEnd {})
  }

  @Test("Of workers of `run`, only the last ones that ended are still known")
  func oldRuns() throws {
    for name in ["one", "two", "three"] {
      let runtime = try world.add(name, isDeclared: false)
      try end(of: runtime).isGone(.exited(0), lastLines: nil)
    }
    // The world keeps two.
    #expect(Set(world.workers.keys.map(\.name)) == ["two", "three"])
    #expect(world.driver.state.state(of: WorkerID("one")) == nil)
    #expect(world.driver.state.state(of: WorkerID("three")) == .terminated)
  }

  @Test("Workers of the configuration are known after any number of ends")
  func declaredRuns() throws {
    for name in ["one", "two", "three", "four"] {
      try end(of: try world.add(name)).isGone(.exited(0), lastLines: nil)
    }
    #expect(world.workers.count == 4)
  }

  @Test("The status of a process that isn't the daemon's child is unknown")
  func unknownStatus() throws {
    #expect(try end(of: world.add()).reap() == .unknown)
  }

  @Test("A worker without a cgroup and without a log has its end reported later, with nothing")
  func nothingToDo() throws {
    let end = try end(of: world.add())
    #expect(!end.hasGroup)
    var outcomes: [String?] = []
    end.removeGroup { outcomes.append($0) }
    end.readLastLines { outcomes.append($0?.last) }
    try world.turn { outcomes.count == 2 }
    #expect(outcomes == [nil, nil])
  }

  @Test("A worker is asked to end by the signal of its configuration")
  func signal() throws {
    let runtime = try world.add { $0.stopSignal = SIGINT }
    #expect(try end(of: runtime).stopSignal == SIGINT)
  }

  @Test("The end of a worker that runs is unexpected, unless its end was requested")
  func unexpected() throws {
    let runtime = try world.add()
    let end = try end(of: runtime)
    #expect(end.isUnexpected && !end.isTerminating)
    world.driver.request(.stop, runtime.id) { _ in }
    #expect(!end.isUnexpected && end.isTerminating)
  }

  @Test("When the root process has ended, the loop doesn't watch for that any more")
  func exitWatch() throws {
    let runtime = try world.add()
    let process = try #require(runtime.process)
    runtime.exitWatch = try world.services.loop.whenReadable(process.pidfd) {}
    try end(of: runtime).rootHasEnded()
    #expect(runtime.exitWatch == nil)
    // A second end finds nothing to unwatch.
    try end(of: runtime).rootHasEnded()
  }

  @Test("A cgroup whose next process represents the worker has an end of its own")
  func successor() throws {
    let runtime = try world.add()
    let end = try end(of: runtime)
    runtime.ending = EndWorld().ending
    end.externalRootHasEnded()
    #expect(world.externalEnds == [runtime.id] && runtime.ending == nil)
    // None is left: this end is the worker's.
    let last = EndWorld().ending
    runtime.ending = last
    world.whenExternalRootEnds = { $0.process = nil }
    end.externalRootHasEnded()
    #expect(runtime.ending === last)
  }

  // MARK: the requests to end it

  @Test("A worker without a process isn't ended")
  func withoutProcess() throws {
    let runtime = try world.add("web", .terminated)
    world.ends.terminate(runtime.id)
    world.ends.kill(runtime.id)
    world.ends.rootHasEnded(runtime)
    world.ends.terminate(WorkerID("unknown"))
    #expect(runtime.ending == nil && world.notes.all == [])
  }

  @Test("Every request to end a run, and the end of its process, reach the same sequence")
  func oneSequence() throws {
    let runtime = try world.add()
    let end = EndWorld(world.timers)
    runtime.ending = end.ending
    world.ends.terminate(runtime.id, by: SIGABRT)
    #expect(end.begun.contains { $0.hasPrefix("ask \(SIGABRT)") })
    world.ends.kill(runtime.id)
    #expect(end.begun.contains("kill"))
    world.ends.rootHasEnded(runtime)
    #expect(end.rootEnds == 1 && runtime.ending === end.ending)
  }

  @Test("The engine hears that a worker has lost its channels only if it had some")
  func channels() throws {
    let runtime = try world.add()
    world.ends.clearAway(runtime)
    #expect(world.notes.all == [])
    runtime.process = try .forTest()
    do {
      var channels = WorkerChannels()
      channels.talk = try WorkerSocket(path: world.scratch.uniquePath("worker"))
      world.conversations.makeConversation(runtime, over: channels)
    }
    try runtime.conversation?.listenToConnections()
    let worker = try WorkersEnd(try #require(runtime.conversation?.workerSocketPath))
    try world.turn { runtime.conversation?.canShed == true }
    world.notes.forget()
    world.ends.clearAway(runtime)
    #expect(
      world.notes.all == [.channelsChanged(runtime.id, canShed: false, canAnswer: false)])
    // Another thread closes it.
    #expect(try eventually { worker.isClosed })
  }
}
