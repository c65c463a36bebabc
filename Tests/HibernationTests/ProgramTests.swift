import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Common programs, unmodified, with clients that stay connected.
@Suite(.serialized)
struct ProgramTests {
  let service = HibernationService()

  static func hasPython() -> Bool { Program.find("python3") != nil }
  static func hasNode() -> Bool { Program.find("node") != nil }
  static func hasRedis() -> Bool { Program.find("redis-server") != nil }

  @Test(
    "A python server answers on the same connection, and keeps at most 64 pages while it sleeps",
    .enabled(if: hasPython(), "python3 is not installed"),
    arguments: Nightly.one(of: Victim.Parking.available))
  func python(parking: Victim.Parking) throws {
    let victim = try Victim(
      ["python3", Fixture.path("http_state.py"), "--megabytes", "10"], parking: parking)
    try checkServer(victim, atLeast: 12 << 20, keeps: 64 * pageSize)
  }

  @Test(
    .enabled(if: hasNode(), "node is not installed"),
    arguments: Nightly.one(of: Victim.Parking.available))
  func `A node server answers on the same connection`(parking: Victim.Parking) throws {
    let victim = try Victim(["node", Fixture.path("http_state.js")], parking: parking)
    try checkServer(victim, atLeast: 8 << 20, keeps: 256 * pageSize)
  }

  private func checkServer(_ victim: Victim, atLeast: UInt64, keeps: UInt64) throws {
    let port = try #require(Int(try victim.line().split(separator: " ")[1]))
    let connection = try HTTPConnection(port: port)
    #expect(try connection.get("/count") == "1")
    #expect(try connection.get("/put?acorn=buried", method: "POST") == "kept")
    let digest = try connection.get("/digest")
    for round in 2...3 {
      let path = Fixture.imagePath()
      #expect(try victim.anonymousMemory() > atLeast)
      try victim.sleep(service, at: path)
      #expect(try victim.anonymousMemory() <= keeps)
      let late = try HTTPConnection(port: port)  // The kernel accepts it for the sleeper.
      try victim.wake(service, from: path)
      #expect(try connection.get("/count") == "\(round)")
      #expect(try late.get("/get?acorn") == "buried")
      #expect(try connection.get("/digest") == digest)
    }
  }

  @Test(
    "Over a hibernation, redis keeps its keys and the state of its clients",
    .enabled(if: hasRedis(), "redis-server is not installed"),
    arguments: Nightly.one(of: Victim.Parking.available))
  func redis(parking: Victim.Parking) throws {
    let socket = Fixture.imagePath() + ".sock"
    let victim = try Victim(
      [
        "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no",
        "--enable-debug-command", "yes",
      ], parking: parking)
    while try !victim.line().contains("eady to accept") {}
    let reader = try Talk(connectedTo: socket)
    #expect(try reader.ask("DEBUG POPULATE 20000\r") == "+OK")
    let writer = try Talk(connectedTo: socket)
    #expect(try writer.ask("SELECT 3\r") == "+OK")
    #expect(try writer.ask("SET nuts 41\r") == "+OK")
    #expect(try writer.ask("MULTI\r") == "+OK")
    #expect(try writer.ask("INCR nuts\r") == "+QUEUED")
    let digest = try reader.ask("DEBUG DIGEST\r")
    for _ in 0..<3 {
      let path = Fixture.imagePath()
      let slept = try victim.sleep(service, at: path)
      #expect(slept.moved > 2 << 20)
      #expect(try victim.anonymousMemory() <= 128 * pageSize)
      try victim.wake(service, from: path)
      #expect(try reader.ask("DEBUG DIGEST\r") == digest)
    }
    #expect(try writer.ask("EXEC\r") == "*1")
    #expect(try writer.line() == ":42")
    #expect(try reader.ask("DBSIZE\r") == ":20000")
  }

  @Test(
    "If one process of a tree dies in its sleep, the others wake",
    arguments: Nightly.one(of: Victim.Parking.available))
  func childDies(parking: Victim.Parking) throws {
    let victim = try Victim(ready: "forktree", "4", "3", "5", parking: parking)
    let pids = try victim.ask("pids")
    let child = try #require(pids.split(separator: " ").last.flatMap { Int32($0) })
    let path = try victim.sleep(service)
    kill(child, SIGKILL)
    try victim.wake(service, from: path)
    #expect(try victim.ask("sum").hasPrefix("error child \(child)"))
    #expect(try victim.ask("pids") == pids)
  }

  @Test(
    "Pages that a fork shares stay shared", arguments: Nightly.one(of: Victim.Parking.available))
  func forkShared(parking: Victim.Parking) throws {
    let victim = try Victim(ready: "forktree", "16", "3", "5", parking: parking)
    let sum = try victim.ask("sum")
    let before = try victim.proportionalMemory()
    for _ in 0..<3 {
      let summary = try victim.cycle(service)
      #expect(summary.processes == 4)
      #expect(try victim.ask("sum") == sum)
    }
    let after = try victim.proportionalMemory()
    #expect(after <= before + 128 * Int64(pageSize), "\(before) bytes have become \(after)")
  }
}
