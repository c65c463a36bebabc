import Glibc
import Synchronization
import Testing

@Suite("The shell around the engine, simulated") struct ShellSimulationTests {
  /// The number of lives in all parts together.
  private static let seeds = 5000
  private static let parts = 10

  /// The number of completed parts, and how often each event has happened in them.
  private static let total = Mutex<(parts: Int, counts: [String: Int])>((0, [:]))

  /// The first seed: always the same, or `DORMOUSE_TEST_SEED`.
  private static let first =
    getenv("DORMOUSE_TEST_SEED").flatMap { UInt64(String(cString: $0)) } ?? 1

  @Test(
    "In every life nothing is stuck or leaked, no memory is lost, each request is answered once",
    arguments: 0..<parts)
  func lives(index: Int) throws {
    let processes = try ShellProcesses()
    var counts: [String: Int] = [:]
    for number in 0..<(Self.seeds / Self.parts) {
      let seed = Self.first &+ UInt64(index * Self.seeds / Self.parts + number)
      let world = try Self.live(seed, processes)
      counts.merge(world.counts, uniquingKeysWith: +)
      if !world.complaints.isEmpty {
        Issue.record("seed \(seed): \(world.complaints.joined(separator: "; "))")
        return
      }
    }
    let total = Self.total.withLock {
      $0.parts += 1
      $0.counts.merge(counts, uniquingKeysWith: +)
      return $0
    }
    if total.parts == Self.parts { checkThatAllHappens(total.counts) }
  }

  /// Checks that each event happens: a simulation in which it never does tests nothing about it.
  private func checkThatAllHappens(_ counts: [String: Int]) {
    for name in [
      "suspended", "refused", "hibernated", "hibernateFailed", "resumed", "resumeFailed", "found",
      "exited", "launchFailed", "launched", "undone", "undoOverdue", "lost", "late", "twice",
      "clear failed", "left behind", "still stopped", "asked", "question dropped", "unhealthy",
      "measured", "first look", "woken by schedule", "plan not kept", "client left", "event sent",
      "disk read", "ran", "reloaded", "removed alive", "removed while under way", "changed",
      "adopted external", "released external", "followed by a successor", "shutdown", "leave",
      "shutdown instead of leave", "died", "taken over", "left asleep", "adopted",
      "adopted suspended", "adopted hibernated", "forgotten", "answered at the end", "arrival seen",
      "started again", "undeclared while it returns", "adopted by rule", "released by rule",
      "released from its rule", "changed by rule", "can't be woken yet", "trim lost",
    ] {
      #expect(counts[name, default: 0] > 2, "\(name): \(counts[name, default: 0])")
    }
  }

  /// Simulates all daemons of one life, and returns the last one.
  private static func live(_ seed: UInt64, _ processes: ShellProcesses) throws -> ShellWorld {
    var world = try ShellWorld(seed: seed, processes)
    for generation in 0... {
      guard
        let next = try world.live(stimuli: generation == 0 ? 22 : 8, isLast: generation == 2)
      else { break }
      world = next
    }
    return world
  }
}
