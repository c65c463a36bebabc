import Glibc
import Lifecycle
import Linux

@testable import Daemon

/// Simulated processes of another supervisor, for the real `ExternalAdoption`.
final class ShellExternals {
  private unowned let world: ShellWorld
  /// The runs that were given back to their supervisor.
  private var released: [ShellRun] = []

  init(_ world: ShellWorld) { self.world = world }

  /// A released run that isn't as its supervisor left it; nil: none.
  var omission: String? {
    released.first { $0.body != .running && $0.body != .dead }.map {
      "\($0.id) was released, and doesn't run (\($0.body.rawValue))"
    }
  }

  /// Examines a process, as if on another thread.
  func examine(
    within limit: Duration,
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

  /// Makes the run of a process that is adopted.
  func makeRun(_ name: String) throws(SystemCallError) -> ShellRun {
    if world.chance(5) { throw SystemCallError("pidfd_open", on: name, code: ESRCH) }
    world.count("adopted external")
    if name.hasPrefix("r"), name.contains("-") { world.count("adopted by rule") }
    return ShellRun(WorkerID(name), world, isExternal: true)
  }

  /// - Parameter rule: the rule by which it was adopted.
  func didRelease(_ run: ShellRun, _ rule: String?) {
    released.append(run)
    guard run.body == .running else { return }
    if run.isImageNeeded { run.complain("is released with memory in an image") }
    world.count("released external")
    if let rule, !world.rules.rules.contains(where: { $0.name == rule }) {
      world.count("released by rule")
    }
  }
}
