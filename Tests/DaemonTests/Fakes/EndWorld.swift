import Lifecycle
import Policy
import TestSupport

@testable import Daemon

/// A run of a worker whose end happens as a test says: the real `WorkerEnding` over fake processes, time and memory.
final class EndWorld {
  let world: AdapterWorld
  let worker: WorkerUnit
  let ending: WorkerEnding
  let memory = FakeMemory()

  /// - Parameter hasGroup: it has a control group of its own.
  init(
    _ timers: FakeTimers = FakeTimers(), hasGroup: Bool = true
  ) throws {
    world = try AdapterWorld(timers)
    worker = try world.add()
    if hasGroup {
      try world.scratch.write("group/cgroup.events", "")
      // Of one name, only one stop command of all tests could begin at a time.
      let name = "web-\(UInt64.random(in: 0 ... .max))"
      worker.process = try .forTest(name, in: .init(path: world.scratch.path + "/group"))
    }
    guard let process = worker.process else { throw TestFailure("it has no process") }
    ending = WorkerEnding(of: worker, process: process, ends: world.ends)
    worker.ending = ending
    world.makeSleeps(over: memory).makeSleep(for: worker)
  }

  var timers: FakeTimers { world.timers }
  var processes: FakeWorkerProcesses { world.workerProcesses }
  var begun: [String] { processes.begun }

  /// How it was reported to the engine that it has ended.
  var gone: [ExitStatus] {
    world.notes.all.compactMap { if case .exited(_, let status) = $0 { status } else { nil } }
  }

  /// What was logged of it.
  var lines: [String] {
    world.logged.split(separator: "\n").compactMap { line in
      line.firstRange(of: "web: ").map { String(line[$0.upperBound...]) }
    }
  }

  /// The engine is asked to end it.
  func requestEnd() { world.driver.request(.stop, worker.id) { _ in } }

  /// The root process has ended, and all that was left has been found.
  func endRoot(leaving left: WhatIsLeft = FakeWorkerProcesses.nothing) {
    ending.rootHasEnded()
    processes.looked(left)
  }

  /// Its memory is being worked on.
  func actOnMemory() { worker.sleep?.hibernate() }

  /// The same, as of a worker that an earlier daemon has left: also where its root process has ended.
  func recoverMemory() {
    worker.sleep?.perform({ $0.recover(expecting: .unknown, then: $1) }, then: { _ in })
  }

  /// Nothing is due any more, and nothing that comes late changes anything.
  var isAtRest: Bool {
    let before = (begun.count, gone.count, lines.count)
    processes.repeatAll()
    ending.rootHasEnded()
    ending.terminate()
    ending.kill()
    return timers.pending.isEmpty && before == (begun.count, gone.count, lines.count)
  }
}
