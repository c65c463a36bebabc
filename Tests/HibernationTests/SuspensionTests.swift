import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Suspension without hibernation.
@Suite(.serialized)
struct SuspensionTests {
  @Test(
    "No call of a suspended program returns EINTR when the program is woken",
    arguments: Nightly.one(of: Victim.Parking.available))
  func noInterruptedCalls(parking: Victim.Parking) throws {
    let victim = try Victim(ready: "torture", "2", "16", "3", parking: parking)
    let sum = try victim.ask("sum")
    for _ in 1...20 {
      try victim.suspend()
      victim.target.restartInterruptedSyscalls()
      try victim.target.wake(isStopped: parking == .traced)
      try #require(try victim.ask("sum") == sum)
    }
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }
}
