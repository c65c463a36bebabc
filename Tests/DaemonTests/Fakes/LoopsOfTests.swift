import DaemonFakes
import Linux
import Policy
import TestSupport

@testable import Daemon

/// Other test targets use it as well.
typealias FakeLoop = DaemonFakes.FakeLoop

extension JobPool {
  /// Threads of a test's own: tests that run in parallel may have jobs about the same subject.
  static var forTest: JobPool { JobPool(name: "test", maxOrdinary: 256, endsAfter: .seconds(5)) }
}

extension EventLoop {
  /// Turns the loop until the condition holds. The limit is only for a test that fails.
  func turn(until isDone: () throws -> Bool) throws {
    let deadline = Self.now + .seconds(60)
    while try !isDone() {
      let next = Self.now + .milliseconds(2)
      if next > deadline { throw TestFailure("the condition didn't hold within 60 s") }
      try turn(until: next)
    }
  }
}
