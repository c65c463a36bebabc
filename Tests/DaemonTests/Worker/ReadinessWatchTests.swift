import Glibc
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("A worker's readiness") struct ReadinessWatchTests {
  /// A run of a worker whose part the test's own process plays.
  private final class World: ReadinessHost {
    let timers = FakeTimers()
    let scratch: Scratch
    var isLaunching = true
    private(set) var readies = 0
    private(set) var lines: [String] = []
    private(set) var asked: [Policy.Probe] = []
    private(set) var dropped = 0
    private var searches:
      [(scan: LogScan, then: (JobOutcome<Result<Bool, SystemCallError>>) -> Void)] = []
    private var answer: ((ProbeRunner.Outcome) -> Void)?

    init() throws { scratch = try Scratch(["web.log": ""]) }

    func watch(_ rule: ReadinessRule, _ channel: ReadinessChannel? = nil) throws -> ReadinessWatch {
      var plan = LaunchPlan(
        name: "web", command: ["web"], directory: "/", environment: [:],
        logPath: "\(scratch.path)/web.log")
      plan.readinessChannel = channel
      let process = try WorkerProcess.adopt(
        try ProcessIdentity.current(of: getpid()), plan: plan, opensMemory: false)
      return ReadinessWatch(Readiness(rule, worker: process), timers: timers, host: self)
    }

    var isSearching: Bool { !searches.isEmpty }

    /// The other thread looks, and returns what it finds, or something else.
    func look(_ outcome: JobOutcome<Result<Bool, SystemCallError>>? = nil) throws {
      guard !searches.isEmpty else { throw TestFailure("nothing is looked for") }
      let (scan, then) = searches.removeFirst()
      if let outcome { return then(outcome) }
      then(.done(.success(try scan.look())))
    }

    func reply(_ outcome: ProbeRunner.Outcome) {
      let waiting = answer
      answer = nil
      waiting?(outcome)
    }
    var isAsked: Bool { answer != nil }

    func pass(_ milliseconds: Int = 50) { timers.advance(by: .milliseconds(milliseconds)) }

    func search(
      _ scan: LogScan, then: @escaping (JobOutcome<Result<Bool, SystemCallError>>) -> Void
    ) { searches.append((scan, then)) }
    /// What holds a port that isn't the worker's.
    var other: PortHolder?
    func findHolder(of port: UInt16, then: @escaping (PortHolder?) -> Void) { then(other) }
    func ask(
      _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
    ) -> () -> Void {
      asked.append(probe)
      self.answer = answer
      return { [self] in
        self.answer = nil
        dropped += 1
      }
    }
    func isReady() { readies += 1 }
    func log(_ priority: DaemonLog.Priority, _ text: String) { lines.append(text) }
  }

  private let world: World

  init() throws { world = try World() }

  private func expectQuiet() { #expect(world.timers.pending.isEmpty && !world.isSearching) }

  @Test(
    "A worker is ready when a line of its log contains the configured text",
    arguments: [
      ReadinessRule.logLine("listening"), .logPattern("^listening on [0-9]+$"),
    ])
  func logLine(rule: ReadinessRule) throws {
    let watch = try world.watch(rule)
    watch.begin()
    try world.look()
    #expect(world.readies == 0 && !world.isSearching, "it looks again after 50 ms")
    world.pass()
    try world.scratch.write("web.log", "starting\nlistening on 80\n")
    try world.look()
    #expect(world.readies == 1)
    expectQuiet()
  }

  @Test("A look for readiness that failed is repeated, and one warning is logged")
  func failedLooks() throws {
    let watch = try world.watch(.logLine("listening"))
    watch.begin()
    try world.look(.overdue)
    world.pass()
    try world.look(.done(.failure(SystemCallError("open", on: "log", code: EIO))))
    world.pass()
    try world.look(.busy)
    world.pass()
    #expect(world.lines == ["can't read its log: check its file system"])
    try world.scratch.write("web.log", "listening\n")
    try world.look()
    #expect(world.readies == 1)
  }

  @Test("A worker is ready when it accepts connections at its port")
  func tcp() throws {
    let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    try #require(raw >= 0)
    let listener = Descriptor(owning: raw)
    let bound = withLoopback(0) { bind(listener.raw, $0, $1) }
    try #require(bound == 0)
    let watch = try world.watch(.tcp(localPort(of: listener.raw)))
    watch.begin()
    for _ in 0..<5 { world.pass() }
    #expect(world.readies == 0, "it doesn't listen yet")
    listen(listener.raw, 5)
    let isFound = try eventually {
      world.pass()
      return world.readies == 1
    }
    #expect(isFound)
    world.pass(500)
    #expect(world.readies == 1)
    expectQuiet()
  }

  @Test("An older program that holds the port of a worker is named")
  func foreignListener() throws {
    let listener = try Descriptor.socket(family: AF_INET, type: SOCK_STREAM, isBlocking: false)
    try #require(withLoopback(0) { bind(listener.raw, $0, $1) } == 0)
    listen(listener.raw, 5)
    world.other = PortHolder(name: "nginx", pid: 71)
    let port = localPort(of: listener.raw)
    let watch = try world.watch(.tcp(port))
    watch.begin()
    #expect(
      try eventually {
        world.pass()
        return world.readies == 1
      })
    #expect(world.lines.count == 1)
    #expect(world.lines.first?.hasPrefix("port \(port) is held by nginx (pid 71)") == true)
    expectQuiet()
  }

  @Test("A worker is ready when it has written a line to its notification descriptor")
  func descriptor() throws {
    let channel = try ReadinessChannel(number: 3)
    let watch = try world.watch(.descriptor(3), channel)
    watch.begin()
    try channel.descriptor.writeAll("rea")
    world.pass()
    #expect(world.readies == 0, "half a line")
    try channel.descriptor.writeAll("dy\n")
    world.pass()
    #expect(world.readies == 1)
    expectQuiet()
  }

  private static func probe(_ successes: Int = 1) -> Policy.Probe {
    Policy.Probe(
      .tcp(host: "127.0.0.1", port: 1), initialDelay: .seconds(2), period: .seconds(10),
      successThreshold: successes)
  }

  @Test("A worker is probed for readiness until a probe succeeds")
  func probe() throws {
    let watch = try world.watch(.probe(Self.probe()))
    watch.begin()
    #expect(world.timers.pending == [.seconds(2)])
    world.pass(2000)
    world.reply(.failure("refused"))
    #expect(world.readies == 0 && world.timers.pending == [.seconds(10)])
    world.pass(10_000)
    #expect(world.asked.count == 2 && world.timers.pending.isEmpty)
    world.reply(.success)
    #expect(world.readies == 1 && world.dropped == 0)
    expectQuiet()
  }

  @Test("A worker is ready after as many successful probes in a row as configured")
  func threshold() throws {
    let watch = try world.watch(.probe(Self.probe(2)))
    watch.begin()
    world.pass(2000)
    world.reply(.success)
    world.pass(10_000)
    world.reply(.failure("refused"))
    world.pass(10_000)
    world.reply(.success)
    #expect(world.readies == 0)
    world.pass(10_000)
    world.reply(.success)
    #expect(world.readies == 1)
  }

  @Test("A worker that reports readiness itself isn't probed, and becomes ready once")
  func notify() throws {
    let watch = try world.watch(.notify)
    watch.begin()
    expectQuiet()
    watch.saidReady()
    watch.saidReady()
    #expect(world.readies == 1)
  }

  @Test("A worker that reports readiness is ready, whatever its rule looks for")
  func saidBefore() throws {
    let log = try world.watch(.logLine("listening"))
    log.begin()
    log.saidReady()
    try world.look(.done(.success(true)))
    #expect(world.readies == 1)
    let asked = try world.watch(.probe(Self.probe()))
    asked.begin()
    world.pass(2000)
    asked.saidReady()
    #expect(world.readies == 2 && world.dropped == 1 && !world.isAsked)
    expectQuiet()
  }

  @Test("Readiness isn't looked for after the run has ended")
  func ended() throws {
    let log = try world.watch(.logLine("listening"))
    log.begin()
    log.end()
    try world.look(.done(.success(true)))
    let asked = try world.watch(.probe(Self.probe()))
    asked.begin()
    world.pass(2000)
    asked.end()
    let (waits, looks) = (try world.watch(.probe(Self.probe())), try world.watch(.tcp(1)))
    waits.begin()
    waits.end()
    looks.begin()
    looks.end()
    #expect(world.readies == 0 && world.dropped == 1)
    expectQuiet()
  }

  @Test("Readiness isn't looked for when the engine doesn't wait for it")
  func notLaunching() throws {
    let log = try world.watch(.logLine("listening"))
    log.begin()
    let asked = try world.watch(.probe(Self.probe()))
    asked.begin()
    world.isLaunching = false
    try world.look(.done(.success(true)))
    world.pass(60_000)
    #expect(world.readies == 0 && world.asked.isEmpty)
    expectQuiet()
  }
}
