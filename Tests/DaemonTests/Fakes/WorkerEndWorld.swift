import Lifecycle
import Policy
import TestSupport

@testable import Daemon

/// A run of a worker that ends as a test says: the real `WorkerEnding` over fake processes, time
/// and memory.
final class WorkerEndWorld {
  let world: AdapterWorld
  let worker: WorkerUnit
  let ending: WorkerEnding
  let memory = FakeMemory()

  /// - Parameter hasGroup: whether the worker has a cgroup of its own.
  init(
    _ timers: FakeTimers = FakeTimers(), hasGroup: Bool = true
  ) throws {
    world = try AdapterWorld(timers)
    worker = try world.add()
    if hasGroup {
      try world.scratch.write("group/cgroup.events", "")
      // The name is unique: with one name, only one stop command of all tests could start at a
      // time.
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

  /// The statuses with which the end was reported to the engine.
  var gone: [ExitStatus] {
    world.notes.all.compactMap { if case .exited(_, let status) = $0 { status } else { nil } }
  }

  /// The lines that were logged about the worker.
  var lines: [String] {
    world.logged.split(separator: "\n").compactMap { line in
      line.firstRange(of: "web: ").map { String(line[$0.upperBound...]) }
    }
  }

  /// Asks the engine to stop the worker.
  func requestEnd() { world.driver.request(.stop, worker.id) { _ in } }

  /// Reports that the root process has ended, and which processes are left.
  func endRoot(leaving left: RemainingProcesses = FakeWorkerProcesses.nothing) {
    ending.rootDidEnd()
    processes.scanned(left)
  }

  /// Begins an operation on the worker's memory.
  func actOnMemory() { worker.sleep?.hibernate() }

  /// Begins a recovery, as of a worker that an earlier daemon has left. It is possible even if the
  /// root process has ended.
  func recoverMemory() {
    worker.sleep?.perform({ $0.recover(expecting: .unknown(), then: $1) }, then: { _ in })
  }

  /// Whether no timer is set, and no late outcome changes anything.
  var isStable: Bool {
    let before = (begun.count, gone.count, lines.count)
    processes.repeatAll()
    ending.rootDidEnd()
    ending.terminate()
    ending.kill()
    return timers.pending.isEmpty && before == (begun.count, gone.count, lines.count)
  }
}
