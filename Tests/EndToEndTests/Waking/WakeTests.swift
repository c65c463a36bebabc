import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Waking") struct WakeTests {
  /// No worker changes its state by itself, except when it is woken.
  static let manual = """
    policy_overrides:
      background: { suspend_after: 1h }
      hibernate: { after: never, cooldown: 0s, min_footprint: 0B }
    workers:

    """

  /// The policy `server`, with seconds instead of minutes.
  static let server = """
    policy: \(TestMachine.policy("server"))
    policy_overrides:
      foreground: { idle_after: 2s }
      background: { suspend_after: 1s, shed_deadline: 500ms }
      hibernate: { after: never, cooldown: 0s, min_footprint: 0B }
    workers:

    """

  @Test(arguments: Nightly.one(of: Setting.available))
  func `A connection, data and a hang-up each wake a hibernated server`(setting: Setting) throws {
    let web = try WebWorker()
    let daemon = try TestDaemon(Self.manual + web.entry(setting), setting: setting)
    try daemon.wait("web", toBe: "foreground")
    func putToSleep() throws {
      // A hang-up that it hasn't read would wake it.
      try web.waitForItsReads()
      try daemon.done("hibernate", "web")
      try daemon.expectSleep("web", "hibernated")
    }
    var connection: HTTPConnection? = try HTTPConnection(port: web.port)
    let digest = try connection?.get("/digest")
    #expect(try connection?.get("/count") == "1")

    try putToSleep()
    #expect(try HTTPConnection(port: web.port).get("/count") == "2")
    try daemon.wait("web", toBe: "background")
    try daemon.waitForLogText("a connection on port \(web.port)")

    try putToSleep()
    #expect(try connection?.get("/count") == "3")
    try daemon.waitForLogText("data on a connection to port \(web.port)")
    #expect(try connection?.get("/digest") == digest)

    try putToSleep()
    connection = nil
    try daemon.wait("web", toBe: "background")
    try daemon.waitForLogText("a hang-up on a connection to port \(web.port)")
  }

  @Test("redis sleeps with an idle client connected, and answers the client's next command")
  func redis() throws {
    let port = try freePort()
    let daemon = try TestDaemon(
      Self.manual + """
          redis:
            command: [redis-server, --port, "\(port)", --save, ""]
            readiness: { tcp: \(port) }

        """)
    try daemon.wait("redis", toBe: "foreground")
    let client = try LineClient(port: port)
    #expect(try client.ask("SET k v") == "+OK")
    for verb in ["suspend", "hibernate"] {
      try Self.askSlowly(client)
      try daemon.done(verb, "redis")
      try daemon.expectSleep("redis", verb == "suspend" ? "suspended" : "hibernated")
      #expect(try client.ask("PING") == "+PONG")
      try daemon.wait("redis", toBe: "background")
    }
    #expect(try client.ask("STRLEN k") == ":1")
  }

  /// A request whose answer takes 50 ms. If an answer follows within a tick of TCP's clock, the
  /// daemon can't know for 2 s that it was sent.
  private static func askSlowly(_ client: LineClient) throws {
    #expect(try client.ask("BLPOP nothing 0.05") == "*-1")
  }

  @Test(arguments: Nightly.one(of: Setting.available))
  func `No request is lost and no descriptor leaks over many sleeps`(setting: Setting) throws {
    let web = try WebWorker(megabytes: 2)
    let daemon = try TestDaemon(Self.manual + web.entry(setting), setting: setting)
    try daemon.wait("web", toBe: "foreground")
    let steady = try HTTPConnection(port: web.port)
    var count = 1
    #expect(try steady.get("/count") == "1")
    var random = TestRandom()
    var descriptors = 0
    for round in 0..<10 {
      let verb: ControlRequest.Verb = round % 2 == 0 ? .suspend : .hibernate
      // Requests before, during and after falling asleep.
      try daemon.done(verb.rawValue, "web")
      for _ in 0..<20 {
        if Int.random(in: 0..<4, using: &random) == 0 { _ = try? daemon.ask(verb, "web") }
        usleep(UInt32.random(in: 0..<3000, using: &random))
        count += 1
        let isNew = Bool.random(using: &random)
        let connection = isNew ? try HTTPConnection(port: web.port) : steady
        #expect(try connection.get("/count") == "\(count)")
      }
      try daemon.wait("web", toBe: "background")
      if round == 1 { descriptors = try daemon.descriptorCount() }
    }
    // A verb's connection may be open for a moment after its answer. What a worker's first
    // hibernation leaves open (its base, what tracks its writes, the pager that stands by) may have
    // come since.
    #expect(try eventually { try daemon.descriptorCount() <= descriptors + 4 })
  }

  @Test(
    "Under the server policy a request each second keeps a worker awake; without them it sleeps")
  func activity() throws {
    let web = try WebWorker()
    let (port, second) = (try freePort(), try freePort())
    // A worker sleeps 7 s after its last request, far more than the test's pauses between two.
    let policy = Self.server.replacing("idle_after: 2s", with: "idle_after: 6s")
    let daemon = try TestDaemon(
      policy + web.entry() + """
          redis:
            command: [redis-server, --port, "\(port)", --save, ""]
            readiness: { tcp: \(port) }
          idle:
            command: [redis-server, --port, "\(second)", --save, ""]
            readiness: { tcp: \(second) }

        """)
    // On a slow machine one may sleep again before the last one is ready.
    for name in ["web", "redis", "idle"] {
      let hasStarted = try eventually {
        !["terminated", "launching"].contains(try daemon.worker(name).state)
      }
      #expect(hasStarted, "\(name) isn't ready: \(daemon.logText)")
    }
    let client = try LineClient(port: port)
    let quiet = try LineClient(port: second)
    try Self.askSlowly(quiet)
    // On a slow machine they may have slept before the first request.
    #expect(try HTTPConnection(port: web.port).get("/count") == "1")
    #expect(try client.ask("PING") == "+PONG")
    var count = 1
    let said = try Self.logText(of: daemon, duringSecondsOfRequests: 10) { () throws in
      count += 1
      // web gets a new connection each time, redis has an old one.
      #expect(try HTTPConnection(port: web.port).get("/count") == "\(count)")
      #expect(try client.ask("PING") == "+PONG")
    }
    try Self.askSlowly(client)
    #expect(!said.contains("web: background → suspend"), "\(said)")
    #expect(!said.contains("redis: background → suspend"), "\(said)")
    for name in ["web", "redis", "idle"] { try daemon.wait(name, toBe: "suspended") }
    #expect(try quiet.ask("PING") == "+PONG")
    try daemon.wait("idle", toBe: "foreground")
    #expect(try HTTPConnection(port: web.port).get("/count") == "\(count + 1)")
  }

  /// What the daemon logs while a request a second comes. Where the machine held this test up for 3
  /// s between two of them, counting begins again.
  private static func logText(
    of daemon: TestDaemon, duringSecondsOfRequests seconds: Int, ask: () throws -> Void
  ) throws -> Substring {
    let end = Deadline(in: .seconds(120))
    while !end.hasPassed {
      try ask()
      let before = daemon.logText.count
      var (last, isInTime) = (Clocks.monotonic, true)
      for _ in 0..<seconds where isInTime {
        usleep(1_000_000)
        try ask()
        isInTime = Clocks.monotonic - last < 3_000_000_000
        last = Clocks.monotonic
      }
      if isInTime { return daemon.logText.dropFirst(before) }
    }
    throw TestFailure("this machine never let \(seconds) s of requests through without a gap")
  }

  private static func suspensions(in daemon: TestDaemon) -> Int {
    daemon.logText.split(separator: "\n").count { $0.contains("→ suspending") }
  }

  @Test func `A worker isn't suspended while it works on a long request`() throws {
    let port = try freePort()
    let daemon = try TestDaemon(
      Self.server + """
          slow:
            command:
              - python3
              - -c
              - |
                import socket, time
                listener = socket.create_server(('127.0.0.1', \(port)))
                while True:
                    connection, _ = listener.accept()
                    for line in connection.makefile():
                        time.sleep(int(line))
                        connection.sendall(b'done\\r\\n')
            readiness: { tcp: \(port) }

        """)
    try daemon.wait("slow", toBe: "foreground")
    let client = try LineClient(port: port)
    var sleeps = 0
    // A machine that holds this test up for 3 s lets the worker sleep before a request: then it is
    // asked again.
    for _ in 0..<10 {
      let before = Self.suspensions(in: daemon)
      #expect(try client.ask("6") == "done")
      sleeps = Self.suspensions(in: daemon) - before
      if sleeps == 0 { break }
    }
    #expect(sleeps == 0, "\(daemon.logText)")
    try daemon.wait("slow", toBe: "suspended")
  }
}

extension TestDaemon {
  /// The worker stays asleep for 400 ms.
  func expectSleep(_ name: String, _ state: String) throws {
    let deadline = Deadline(in: .milliseconds(400))
    while !deadline.hasPassed {
      let now = try worker(name).state
      guard now == state else { throw TestFailure("\(name) is \(now), not \(state): \(logText)") }
      usleep(50_000)
    }
  }
}

/// A client of redis' inline protocol, and of other line protocols.
final class LineClient {
  private let socket: Descriptor

  init(port: UInt16) throws { socket = try .connected(to: port) }

  func ask(_ line: String) throws -> String {
    try socket.writeAll("\(line)\r\n")
    var answer: [UInt8] = []
    while answer.last != UInt8(ascii: "\n") {
      guard
        try pollDescriptor(socket.raw, for: POLLIN, until: Deadline(in: .seconds(60)))
      else { throw TestFailure("no answer to \(line)") }
      let chunk = try socket.read(upTo: 4096)
      if chunk.isEmpty { throw TestFailure("hung up after \(line)") }
      answer += chunk
    }
    return String(decoding: answer.dropLast(2), as: UTF8.self)
  }
}
