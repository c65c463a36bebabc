import Glibc

/// Checks a condition that has no event repeatedly until it holds; false: it didn't hold within
/// `limit`. The limit only bounds the time of a failing test: a loaded machine may need all of it.
public func eventually(
  within limit: Duration = .seconds(60), _ condition: () throws -> Bool
) throws -> Bool {
  let deadline = ContinuousClock.now + limit
  while ContinuousClock.now < deadline {
    if try condition() { return true }
    usleep(2000)
  }
  return try condition()
}

/// Waits for the condition without blocking one of the few threads that tasks run on.
public func eventually(
  within limit: Duration = .seconds(60), isolation: isolated (any Actor)? = #isolation,
  _ condition: () throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  while try !condition() {
    guard ContinuousClock.now < deadline else {
      throw TestFailure("the condition didn't hold within \(limit)")
    }
    try await Task.sleep(for: .milliseconds(1))
  }
}
