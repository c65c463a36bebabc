import Glibc
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon
@testable import Linux

@Suite("A worker's readiness") struct ReadinessWatchTests {
  private let world: ReadinessWorld

  init() throws { world = try ReadinessWorld() }

  /// Checks that no timer is set. A job would have a deadline.
  private func expectQuiet() { #expect(world.pending.isEmpty) }

  @Test(arguments: [
    ReadinessRule.logLine("listening"), .logPattern("^listening on [0-9]+$"),
  ])
  func `A worker is ready when its log contains the configured text`(rule: ReadinessRule) throws {
    try world.begin(rule)
    try world.deliverOutcome()
    #expect(world.readies == 0 && world.pending == [.milliseconds(50)], "it looks again")
    try world.writeLog("starting\nlistening on 80\n")
    world.pass()
    try world.deliverOutcome()
    #expect(world.readies == 1)
    expectQuiet()
  }

  @Test func `The search of a log that takes too long is repeated, with one warning`() throws {
    try world.writeLog("listening\n")
    try world.begin(.logLine("listening"))
    // The job finds the line, but too late.
    #expect(try eventually { world.threads.isIdle(about: "log of web") })
    world.pass(10_000)
    #expect(world.readies == 0)
    #expect(try world.passUntilReady())
    #expect(world.lines == ["can't read its log: check its file system"])
  }

  @Test func `The search of a log that can't be read is repeated, with one warning`() throws {
    try world.begin(.logLine("listening"), log: world.adapters.scratch.path)
    try world.deliverOutcome()
    world.pass()
    try world.deliverOutcome()
    #expect(world.lines.count == 1 && world.pending == [.milliseconds(50)])
    #expect(world.lines[0].hasPrefix("can't search its log for readiness: "))
  }

  @Test func `A log is searched later while a thread still waits for it`() throws {
    let answers = OneTimeEvent()
    defer { answers.raise() }
    let hangs = world.threads.submitIfIdle(about: "log of web") {
      answers.wait()
      return {}
    }
    try world.writeLog("listening\n")
    try world.begin(.logLine("listening"))
    world.pass(0)
    #expect(hangs && world.pending == [.milliseconds(50)])
    answers.raise()
    // The job has ten seconds of the fake time, which polls would use up.
    #expect(try eventually { world.threads.isIdle(about: "log of web") })
    world.pass()
    try world.deliverOutcome()
    #expect(world.readies == 1 && world.lines == [])
  }

  @Test func `A line in the log of an earlier run doesn't make the new run ready`() throws {
    try world.writeLog("listening\n")
    try world.begin(.logLine("listening"))
    world.worker?.process = try .forTest()
    try world.deliverOutcome()
    world.pass()
    #expect(world.readies == 0)
    expectQuiet()
  }

  @Test func `A ready worker's memory is opened again before the engine knows`() throws {
    var before: [Int] = []
    world.adapters.workerProcesses.whenAsked = { [world] in before.append(world.readies) }
    try world.watch(.notify).didReportReady()
    #expect(before == [0] && world.readies == 1)
  }

  @Test func `A worker that was freed doesn't become ready, and its log isn't searched`() throws {
    try world.writeLog("listening\n")
    let watch = try world.watch(.logLine("listening"))
    world.adapters.workers.removeAll()
    world.worker = nil
    watch.begin()
    expectQuiet()
    #expect(world.readies == 0)
  }

  @Test func `A worker is ready when it accepts connections at its port`() throws {
    let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    try #require(raw >= 0)
    let listener = Descriptor(owning: raw)
    let bound = withLoopback(0) { bind(listener.raw, $0, $1) }
    try #require(bound == 0)
    try world.begin(.tcp(localPort(of: listener.raw)))
    for _ in 0..<5 { world.pass() }
    #expect(world.readies == 0, "it doesn't listen yet")
    listen(listener.raw, 5)
    #expect(try world.passUntilReady())
    world.pass(500)
    #expect(world.readies == 1)
    expectQuiet()
  }

  @Test func `A warning names an older program that has the port of a worker open`() throws {
    let listener = try TestListener()
    let port = listener.port
    world.processes.set { $0.holders[port] = PortHolder(name: "nginx", pid: 71) }
    try world.begin(.tcp(port))
    let hasHolder = try eventually {
      world.pass()
      return world.pending != [.milliseconds(50)]
    }
    #expect(hasHolder)
    try world.deliverOutcome()
    #expect(world.readies == 1 && world.lines.count == 1)
    #expect(world.lines.first?.hasPrefix("port \(port) is held by nginx (pid 71)") == true)
    expectQuiet()
  }

  @Test func `A worker is ready when it has written a line to its descriptor`() throws {
    let channel = try ReadinessChannel(number: 3)
    try world.begin(.notificationDescriptor(3), channel)
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

  @Test func `A worker is probed for readiness until a probe succeeds`() throws {
    try world.begin(.probe(Self.probe()))
    #expect(world.pending == [.seconds(2)])
    world.pass(2000)
    world.reply(.failure("refused"))
    #expect(world.readies == 0 && world.pending == [.seconds(10)])
    world.pass(10_000)
    #expect(world.questions.asked.count == 2 && world.pending.isEmpty)
    world.reply(.success)
    #expect(world.readies == 1 && world.questions.dropped == 0)
    expectQuiet()
  }

  @Test func `A worker is ready after as many successful probes in a row as configured`() throws {
    try world.begin(.probe(Self.probe(2)))
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

  @Test(arguments: [ReadinessRule.notify, .logLine("listening"), .probe(probe())])
  func `A worker that reports readiness is ready once, whatever its rule`(
    rule: ReadinessRule
  ) throws {
    try world.writeLog("listening\n")
    let watch = try world.begin(rule)
    if rule == .notify { expectQuiet() }
    let asked = rule == .probe(Self.probe()) ? 1 : 0
    world.pass(2000 * asked)
    #expect(world.questions.asked.count == asked)
    watch.didReportReady()
    watch.didReportReady()
    if rule == .logLine("listening") { try world.deliverOutcome() }
    #expect(world.readies == 1 && world.questions.dropped == asked)
    #expect(world.questions.answer == nil)
    expectQuiet()
  }

  @Test func `Readiness isn't checked after the run has ended`() throws {
    try world.writeLog("listening\n")
    try world.begin(.logLine("listening")).end()
    try world.deliverOutcome()
    let asked = try world.begin(.probe(Self.probe()))
    world.pass(2000)
    asked.end()
    let (waits, looks) = (try world.watch(.probe(Self.probe())), try world.watch(.tcp(1)))
    waits.begin()
    waits.end()
    looks.begin()
    looks.end()
    #expect(world.readies == 0 && world.questions.dropped == 1)
    expectQuiet()
  }

  @Test func `Readiness isn't checked when the engine doesn't wait for it`() throws {
    try world.writeLog("listening\n")
    try world.begin(.logLine("listening"))
    let asked = try world.begin(.probe(Self.probe()))
    if let id = world.worker?.id { world.adapters.driver.send(.ready(id)) }
    try world.deliverOutcome()
    world.pass(60_000)
    #expect(world.readies == 1 && world.questions.asked.isEmpty)
    expectQuiet()
  }
}
