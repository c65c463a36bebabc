import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Workers that change their memory all the time, also while it is copied before a trim by
/// userfaultfd: what was copied too early must not come back.
@Suite(.serialized, .needsUserfaults)
struct BusyTrimTests {
  let service = HibernationService()

  @Test(
    "A worker has the memory that it changed while it was being trimmed",
    arguments: TrimKernelTests.Case.all(
      "missing_writes",
      [
        "write_memory", "read_from_pipe", "read_from_disk", "write_from_outside", "drop_memory",
        "map_again", "exchange", "change_all",
      ]))
  func changes(test: TrimKernelTests.Case) throws {
    let worker = try TrimKernelTests.Worker(test, service)
    var random = TestRandom(seed: 7)
    var trims = 0
    var round = 0
    let end = Deadline(in: .seconds(60))
    while round < Nightly.rounds(5, of: 30) || trims == 0 && !end.hasPassed {
      round += 1
      do {
        try worker.trim()
        trims += 1
      } catch let error as HibernationError {
        // No moment was found at which all of its threads wait.
        try #require(error.aftermath == .intact, "\(error)")
      }
      usleep(UInt32.random(in: 0..<5000, using: &random))
    }
    #expect(try worker.victim.ask("run") == "right")
    #expect(trims > 0)
    try worker.finish()
  }
}
