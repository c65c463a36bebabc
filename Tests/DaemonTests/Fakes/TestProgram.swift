import Lifecycle
import Linux
import Policy

@testable import Daemon

/// A wrapper's program that no process runs. It records its launches and its changes.
final class TestProgram: CallersProgram {
  let inheritance = Inheritance(firstArgument: 0)
  let logPath: String? = nil
  let wakes: Int
  var host: String? { "nvim" }
  var directory: String? { "/home/me/shop" }
  private(set) var changes: [WorkerState] = []
  private(set) var launches = 0

  init(wakes: Int = 0) { self.wakes = wakes }

  func didLaunch() { launches += 1 }
  func didEnd(_ status: Lifecycle.ExitStatus) {}
  func didChange(_ transition: Transition) { changes.append(transition.to) }
}
