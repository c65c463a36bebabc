import Glibc
import Policy
import Supervision
import Testing

@testable import Daemon

@Suite("Questions of probes") struct ProbeAskerTests {
  private let world = SenseWorld()
  private let loop: EventLoop
  private let asker: ProbeAsker
  private let process: WorkerProcess
  /// It accepts connections and never answers.
  private let server: TestListener

  init() throws {
    loop = try EventLoop(check: nil)
    asker = ProbeAsker(world.timers, loop)
    process = try #require(try world.add().process)
    server = try TestListener()
  }

  private func turn(until isDone: () -> Bool) throws {
    let end = EventLoop.now + .seconds(30)
    while !isDone(), EventLoop.now < end {
      world.timers.advance(by: .zero)
      if !isDone() { try loop.turn(until: EventLoop.now + .milliseconds(10)) }
    }
  }

  private func silent(_ timeout: Duration = .seconds(2)) -> Probe {
    Probe(.http(Probe.HTTPRequest(port: server.port)), timeout: timeout)
  }

  @Test func `A probe is answered once, and never before the call that starts it returns`() throws {
    var answers: [ProbeRunner.Outcome] = []
    _ = asker.put(Probe(.tcp(host: "127.0.0.1", port: server.port)), to: process) {
      answers.append($0)
    }
    #expect(answers.isEmpty)
    try turn { !answers.isEmpty }
    #expect(answers == [.success])
    world.timers.advance(by: .seconds(100))
    #expect(answers.count == 1 && world.timers.pending.isEmpty)
  }

  @Test func `A probe that can't be started fails, but not before the call returns`() throws {
    var answers: [ProbeRunner.Outcome] = []
    _ = asker.put(Probe(.tcp(host: "not an address", port: 1)), to: process) { answers.append($0) }
    #expect(answers.isEmpty)
    try turn { !answers.isEmpty }
    guard case .failure(let reason)? = answers.first else {
      Issue.record("\(answers)")
      return
    }
    #expect(reason.contains("not an address") && world.timers.pending.isEmpty)
  }

  @Test func `A probe that can't be watched says nothing about its worker, after the call`() {
    var answers: [ProbeRunner.Outcome] = []
    let watches = FakeLoop()
    watches.refusal = ENOMEM
    let asker = ProbeAsker(world.timers, watches)
    _ = asker.put(silent(), to: process) { answers.append($0) }
    #expect(answers.isEmpty)
    world.timers.advance(by: .zero)
    #expect(answers == [.unasked("cancelled")] && world.timers.pending.isEmpty)
  }

  @Test func `A probe without an answer within its time-out is a failure`() throws {
    var answers: [ProbeRunner.Outcome] = []
    _ = asker.put(silent(), to: process) { answers.append($0) }
    world.timers.advance(by: .milliseconds(1999))
    #expect(answers.isEmpty)
    world.timers.advance(by: .milliseconds(1))
    #expect(answers == [.failure("no answer within 2 s")])
    #expect(world.timers.pending.isEmpty)
  }

  @Test func `A probe that was dropped isn't answered, and nothing of it is left`() throws {
    var answers: [ProbeRunner.Outcome] = []
    let watches = FakeLoop()
    let asker = ProbeAsker(world.timers, watches)
    let drop = asker.put(silent(), to: process) { answers.append($0) }
    #expect(watches.active == 1)
    drop()
    drop()
    #expect(world.timers.pending.isEmpty && watches.active == 0)
    world.timers.advance(by: .seconds(100))
    #expect(answers.isEmpty)
  }

  @Test func `A probe whose answer was not yet delivered can be dropped`() {
    var answers: [ProbeRunner.Outcome] = []
    let drop = asker.put(Probe(.tcp(host: "nowhere", port: 1)), to: process) { answers.append($0) }
    drop()
    world.timers.advance(by: .seconds(100))
    #expect(answers.isEmpty)
  }

  @Test func `Two probes at the same time are answered each by itself`() throws {
    var answers: [String] = []
    _ = asker.put(silent(.seconds(5)), to: process) { _ in answers.append("late") }
    _ = asker.put(silent(.seconds(2)), to: process) { _ in answers.append("early") }
    world.timers.advance(by: .seconds(2))
    #expect(answers == ["early"])
    world.timers.advance(by: .seconds(3))
    #expect(answers == ["early", "late"] && world.timers.pending.isEmpty)
  }

  @Test func `A probe over a connection has no child process to reap`() throws {
    let drop = asker.put(silent(), to: process) { _ in }
    #expect(asker.commandPids == [])
    drop()
  }
}
