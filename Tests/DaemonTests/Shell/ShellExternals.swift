import Control
import Lifecycle
import Linux
import Policy
import PolicyFile

@testable import Daemon

/// The host of the real `ExternalAdoption`, over simulated processes of another supervisor.
final class ShellExternals: ExternalHost {
  private unowned let world: ShellWorld
  /// Which are their supervisor's again.
  private var released: [ShellRun] = []

  init(_ world: ShellWorld) { self.world = world }

  /// What isn't as its supervisor left it; nil: nothing.
  var omission: String? {
    released.first { $0.body != .running && $0.body != .dead }.map {
      "\($0.id) was released, and doesn't run (\($0.body.rawValue))"
    }
  }

  // MARK: the adoption's host

  var isClosing: Bool { world.phase.isClosing }
  func isAlive(_ id: WorkerID) -> Bool { world.requests.isAlive(id) }
  func isWrapped(_ id: WorkerID) -> Bool { false }
  func owner(of pid: Int32) -> WorkerID? { nil }

  func examine(
    _ wanted: AdoptionSpecification, as name: String, within limit: Duration,
    then: @escaping (JobOutcome<Result<ExternalProcess, AdoptionRefusal>>) -> Void
  ) {
    world.after(.milliseconds(200), rarely: limit) { [self] in
      let outcome = world.pick([0, 0, 0, 0, 0, 0, 0, 1, 2])
      switch outcome {
      case 0: then(.done(.success(world.processes.external)))
      case 1: then(.done(.failure(.refused("it is stopped"))))
      default: then(.overdue)
      }
    }
  }

  func attach(_ found: ExternalProcess, to runtime: WorkerUnit) throws {
    if world.chance(5) { throw AdoptionRefusal.refused("it has just ended") }
    world.count("adopted external")
    try world.runs.attach(ShellRun(runtime.id, world, isExternal: true), to: runtime)
  }

  func wasAdded(_ id: WorkerID) { world.supervision.restarts.add(id, exits: []) }

  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    world.requests.request(.wake, id, then: answer)
  }

  func letGo(of runtime: WorkerUnit) {
    guard let run = world.run(of: runtime.id) else {
      return world.complain("\(runtime.id) is let go of, and has no run")
    }
    if run.body == .running { world.count("released external") }
    released.append(run)
    world.ends.clearAway(runtime)
    world.saved.remove(runtime.id.name)
  }

  func remove(_ id: WorkerID) { world.supervision.removeWorker(id) }

  func introduce(_ configuration: WorkerConfiguration) {
    world.count("declared after its release")
    world.declared.addDeclared(configuration)
  }

  func attachSuccessor(to runtime: WorkerUnit) -> Successor? {
    guard world.chance(30), let successor = world.runs.takeSuccessor(runtime) else { return nil }
    world.count("followed by a successor")
    return Successor(pid: successor.number, cgroup: "/group")
  }

  func save(_ runtime: WorkerUnit, _ state: WorkerState) {
    world.recordWriter.save(runtime, state: state)
  }
  func wasReleased(_ process: ProcessIdentity, from rule: String) {
    world.count("released from its rule")
    world.rules.wasReleased(process, from: rule)
  }
  func log(_ priority: DaemonLog.Priority, _ text: String) {}
}
