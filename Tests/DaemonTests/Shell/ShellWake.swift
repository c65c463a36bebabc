import Lifecycle
import Policy

@testable import Daemon

// What wakes a simulated worker.

extension ShellRun: WakeHost {
  /// Something comes for it.
  func arrive(_ what: String) {
    guard body == .stopped || body == .evicted, let inputs, isWatched else { return }
    world.count("arrival seen")
    inputs.arrive(what)
    world.clock.becomesReadable(inputs.descriptor)
  }

  var healthChecksWhileAsleep: [AsleepAnswer] { [] }
  func prioritize() {}
  func send(_ event: Event) {
    if hasEnded { complain("\(event) after its end") }
    world.driver.send(event)
  }
  func watchHasEnded() {}
}
