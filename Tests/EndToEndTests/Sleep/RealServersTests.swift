import TestSupport
import Testing

@Suite("Servers that many run") struct RealServersTests {
  /// Those that aren't installed don't play; docs and README name the ones that were tried.
  @Test("PostgreSQL, nginx, memcached and a JVM come back with their connections and transactions")
  func comeBack() throws {
    let scratch = try Scratch()
    let outcome = try Command(
      arguments: [
        Surroundings.python, "-B", Surroundings.fixture("servers.py"), Surroundings.executable,
      ]
    ).run(in: scratch, limit: .seconds(120))
    #expect(outcome.code == 0, "\(outcome)")
  }

  @Test("PostgreSQL, nginx and memcached stay awake under a light load, and sleep without one")
  func activity() throws {
    let scratch = try Scratch()
    let outcome = try Command(
      arguments: [
        Surroundings.python, "-B", Surroundings.fixture("servers.py"), Surroundings.executable,
        "activity",
      ]
    ).run(in: scratch, limit: .seconds(120))
    #expect(outcome.code == 0, "\(outcome)")
  }
}
