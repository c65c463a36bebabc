import Control
import Simulation

/// The check of `simulate --check`: it checks the engine's invariants on a machine that fails in
/// every possible way. A failing test names this command.
struct SeedCheck {
  var first: UInt64
  var count: UInt64

  func run() throws {
    var events = 0
    for number in 0..<count {
      var machine = SimulatedMachine(seed: first &+ number)
      do {
        try machine.run()
      } catch {
        Progress.clear()
        throw CommandFailure(.internalError, error.description)
      }
      events += machine.events
      if number & 0xff == 0 { Progress.show("checking", Double(number) / Double(count)) }
    }
    Progress.clear()
    try Output.line("\(count) seeds from \(first), \(events) events: all invariants held")
  }
}
