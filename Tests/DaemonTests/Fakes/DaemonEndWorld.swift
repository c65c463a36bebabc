import Lifecycle
import Linux
import Policy
import Supervision

@testable import Daemon

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
