import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import TestSupport
import Testing

@testable import Daemon

@Suite("The caller's program as the only worker") struct ProgramRunTests {
  private let scratch: Scratch
  private let program = TestProgram()
  private let daemon: Daemon
  private let run: ProgramRun

  init() throws {
    scratch = try Scratch()
    daemon = try Self.makeDaemon(in: scratch, program)
    run = daemon.programRun(of: WorkerID("tool"))
  }

  private static func makeDaemon(in scratch: Scratch, _ program: TestProgram) throws -> Daemon {
    let configuration = DaemonConfiguration(
      workers: [
        WorkerConfiguration(
          name: "tool", command: ["/nonexistent/tool"], directory: "/",
          policy: LifecyclePolicy(name: "test"))
      ])
    return try Daemon(
      DaemonSettings(
        configuration: configuration, stateDirectory: scratch.path + "/state",
        socket: scratch.path + "/tool.sock", environment: [:], version: "1",
        reload: { ParseResult(value: nil, diagnostics: []) }),
      .wrapper(
        program, log: scratch.path + "/log", pace: SamplingPace(), sharedImages: { 0 }))
  }

  @Test func `A daemon whose socket is open and that is dropped frees its components`() throws {
    let scratch = try Scratch()
    weak var control: ControlServer?
    do {
      let daemon = try Self.makeDaemon(in: scratch, program)
      control = daemon.shared.control
      try control?.open(daemon.control)
    }
    #expect(control == nil && isAbsent(scratch.path + "/tool.sock"))
  }

  @Test func `Before its start, a run has no worker, no process and no socket`() {
    #expect(run.state == nil && run.process == nil && run.isReaped && !run.isBusy)
    #expect(run.footprint == .zero && isAbsent(scratch.path + "/tool.sock"))
    run.sampleAgain()
    run.cleanUp()
  }

  @Test func `A program that can't be started ends the launch, and the turn returns`() throws {
    defer { run.cleanUp() }
    run.begin()
    #expect(run.state == .launching && !isAbsent(scratch.path + "/tool.sock"))
    var reports = 0
    run.report { _ in reports += 1 }
    let end = EventLoop.now + .seconds(60)
    run.turn { reports > 0 && run.state == .terminated || EventLoop.now > end }
    #expect(run.state == .terminated && run.process == nil && reports == 1)
    #expect(program.changes == [.launching, .terminated] && program.launches == 0)
    #expect(isAbsent(scratch.path + "/tool.sock"), "the socket is closed with the last turn")
  }

  @Test func `A connection calls back with nothing if no daemon is there`() throws {
    defer { run.cleanUp() }
    let listener = try UnixSocket.bound(to: scratch.path + "/there", .stream)
    #expect(listen(listener.raw, 1) == 0)
    var connections: [Bool] = []
    run.connect(to: scratch.path + "/nothing") { connections.append($0 != nil) }
    let end = EventLoop.now + .seconds(60)
    run.turn { connections.count == 1 || EventLoop.now > end }
    run.connect(to: scratch.path + "/there") { connections.append($0 != nil) }
    run.turn { connections.count == 2 || EventLoop.now > end }
    #expect(connections == [false, true])
  }
}
