import Lifecycle
import Linux
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
    _ timers: FakeLoop = FakeLoop(), hasGroup: Bool = true, state: WorkerState = .background
  ) throws {
    world = try AdapterWorld(timers)
    worker = try world.add("web", state)
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

  var timers: FakeLoop { world.timers }
  var processes: FakeWorkerProcesses { world.workerProcesses }
  var begun: [String] { processes.begun }

  /// The statuses with which the end was reported to the engine.
  var gone: [ExitStatus] {
    world.notes.all.compactMap { if case .exited(_, let status) = $0 { status } else { nil } }
  }

  /// The lines that were logged about the worker.
  var lines: [String] { world.logFile.lines(about: "web") }

  /// Reports that the root process has ended, and which processes are left.
  func endRoot(leaving left: RemainingProcesses = FakeWorkerProcesses.nothing) {
    ending.rootDidEnd()
    processes.scanned(left)
  }

  /// Begins an operation on the worker's memory.
  func actOnMemory() { worker.sleep?.hibernate() }

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

/// The daemon's end over the real engine, whose directives aren't carried out: processes end, and
/// operations succeed or fail, when a test says so.
final class DaemonEndWorld {
  let world: AdapterWorld
  let end: DaemonEnd

  init() throws {
    world = try AdapterWorld()
    end = world.ending
    world.notes.whenQuiet = { [weak end] in end?.engineDidBecomeQuiet() }
  }

  @discardableResult
  func add(
    _ name: String, _ state: WorkerState = .background, needs: [String] = []
  ) throws -> WorkerUnit {
    try world.add(name, state) { $0.dependsOn = needs.map { Dependency($0) } }
  }

  func addExternal(_ name: String, _ state: WorkerState) throws {
    let worker = try add(name, state)
    worker.isDeclared = false
    worker.external = ExternalWorker(mayBeTerminated: false)
  }

  func addWaking(_ name: String) throws {
    world.driver.request(.wake, try add(name, .suspended).id) { _ in }
  }

  func addFrozen(_ name: String, _ state: WorkerState) throws {
    try world.scratch.write("group/cgroup.events", "")
    try add(name, state).process = .forTest(
      name, in: WorkerCgroup(path: world.scratch.path + "/group"))
  }

  func send(_ event: (WorkerID) -> Event, _ name: String) {
    world.driver.send(event(WorkerID(name)))
  }

  func didStop(_ name: String) { send({ .exited($0, .exited(0)) }, name) }
  func didWake(_ name: String) { send({ .resumed($0, .milliseconds(20)) }, name) }

  /// Reports a failed wake. The worker's memory is unchanged.
  func cantBeWoken(_ name: String) {
    send({ .resumeFailed($0, "its image can't be read", intact: true) }, name)
  }

  /// Lets time pass until the engine knows that SIGKILL had no effect.
  func outlivesKill(_ name: String) {
    for _ in 0..<100 where !world.driver.state.hasOutlivedKill(WorkerID(name)) { pass() }
  }

  func pass(seconds: Int = 1) {
    for _ in 0..<seconds {
      world.timers.advance(by: .seconds(1))
      world.driver.passDeadlines()
    }
  }

  var asked: [String] { world.asked }
  var lines: [String] { world.logged.split(separator: "\n").map { String($0) } }
  func hasLogged(_ text: String) -> Bool { world.logged.contains(text) }

  /// The state that the next daemon would read.
  func saved(_ name: String) -> String? {
    world.services.records.record(of: name)?.state
  }
}
