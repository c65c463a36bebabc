import Policy
import TestSupport

@testable import Daemon

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
