import Glibc
import Simulation
import TestSupport
import Testing

@Suite("A simulated machine that does everything wrong")
struct SeedTests {
  @Test("A simulated machine that does everything wrong keeps every invariant, over many seeds")
  func manySeeds() async throws {
    // With `DORMOUSE_SEED`, only this seed runs.
    if let text = getenv("DORMOUSE_SEED"), let seed = UInt64(String(cString: text)) {
      _ = try Self.run(seeds: seed..<seed + 1)
      return
    }
    let count = UInt64(Nightly.rounds(1000, of: 5000, variable: "DORMOUSE_SEEDS"))
    let seen = try await withThrowingTaskGroup(of: Set<String>.self) { group in
      for first in stride(from: UInt64(1), through: count, by: 50) {
        group.addTask { try Self.run(seeds: first..<first + 50) }
      }
      return try await group.reduce(into: Set()) { $0.formUnion($1) }
    }
    // The seeds prove nothing unless every case occurs.
    let events = [
      "background → suspending", "suspended → hibernating", "hibernated → resuming",
      "resuming → foreground", "resuming → hibernated", "hibernating → suspended",
      "jetsam of suspended", "jetsam of background", "jetsam of foreground",
      "jetsam of hibernated", "report", "would have", "pressure critical", "answer done",
      "look for locks", "purge", "heartbeat of suspended", "heartbeat of hibernated",
      "watchdog ends background", "watchdog reported", "answer refused", "answer failed",
      "answer unknownWorker", "band checked", "released", "adopted", "inspect suspending",
      "inspect hibernating", "inspect resuming", "found under way", "found running",
      "found suspended", "found hibernated", "found unverifiable", "look for WATCHDOG=1", "abort",
      "woken with another to resuming", "woken with another to background",
      "terminates none: tooLittle", "terminates none: noEffect", "protected left", "notice",
      "notice withdrawn", "over warn", "over hibernate", "over restart",
      "hibernate for its footprint",
      "restart for its footprint", "suspended instead of an end", "machine slept",
      "trim", "fill",
    ]
    for event in events { #expect(seen.contains(event), "never seen: \(event)") }
  }

  private static func run(seeds: Range<UInt64>) throws -> Set<String> {
    var seen: Set<String> = []
    for seed in seeds {
      var machine = SimulatedMachine(seed: seed)
      try machine.run()
      seen.formUnion(machine.seen)
    }
    return seen
  }

  @Test func `A simulated machine does the same again for the same seed`() throws {
    var first = SimulatedMachine(seed: 42)
    var second = SimulatedMachine(seed: 42)
    try first.run()
    try second.run()
    #expect(first.events == second.events)
    #expect(first.seen == second.seen)
  }
}
