import TestSupport
import Testing

@Suite("Widespread servers") struct RealServersTests {
  /// Servers that aren't installed are left out; docs and README name the ones that were tested.
  @Test("PostgreSQL, nginx, memcached and a JVM resume with their connections and transactions")
  func comeBack() throws {
    let scratch = try Scratch()
    let outcome = try Command(
      arguments: [
        TestMachine.python, "-B", TestMachine.fixture("servers.py"), TestMachine.executable,
      ]
    ).run(in: scratch, limit: .seconds(400))
    #expect(outcome.code == 0, "\(outcome)")
  }

  @Test(
    "PostgreSQL, nginx and memcached stay awake under a light load, and sleep without one",
    .enabled(if: Nightly.runs, "only in make test-all"))
  func activity() throws {
    let scratch = try Scratch()
    let outcome = try Command(
      arguments: [
        TestMachine.python, "-B", TestMachine.fixture("servers.py"), TestMachine.executable,
        "activity",
      ]
    ).run(in: scratch, limit: .seconds(400))
    #expect(outcome.code == 0, "\(outcome)")
  }
}
