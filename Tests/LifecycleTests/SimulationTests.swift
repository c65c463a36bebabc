import Simulation
import Testing

@Suite("A simulated machine that does everything wrong")
struct SimulationTests {
  @Test("keeps every invariant, over a thousand seeds")
  func thousandSeeds() throws {
    var seen: Set<String> = []
    for seed in UInt64(1)...1000 {
      var machine = SimulatedMachine(seed: seed)
      try machine.run()
      seen.formUnion(machine.seen)
    }
    // The seeds prove nothing unless they get everywhere.
    let places = [
      "background → suspending", "suspended → hibernating", "hibernated → resuming",
      "resuming → foreground", "resuming → hibernated", "hibernating → suspended",
      "jetsam of suspended", "jetsam of background", "jetsam of foreground",
      "jetsam of hibernated", "report", "would have", "pressure critical", "answer done",
      "answer refused", "answer failed", "answer unknownWorker",
    ]
    for place in places { #expect(seen.contains(place), "never seen: \(place)") }
  }

  @Test("does the same again for the same seed")
  func sameSeedSameRun() throws {
    var first = SimulatedMachine(seed: 42)
    var second = SimulatedMachine(seed: 42)
    try first.run()
    try second.run()
    #expect(first.events == second.events)
    #expect(first.seen == second.seen)
  }
}
