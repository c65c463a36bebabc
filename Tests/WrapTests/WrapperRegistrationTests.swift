import Control
import DaemonFakes
import Glibc
import JSONLines
import Lifecycle
import Linux
import Policy
import PolicyFile
import TestSupport
import Testing

@testable import Daemon
@testable import Wrap

/// A wrapper whose program doesn't run, but has the state and footprint that a test sets, and the
/// daemon's end of its connections, which are real sockets.
private final class World {
  let timers = FakeLoop()
  let watches = FakeLoop()
  private let scratch: Scratch
  private let wrapper: Daemon
  private let id = WorkerID("clangd-7")
  private var listener: Descriptor?
  private(set) var accepted: Descriptor?
  private var framer = LineFramer()
  let registration: WrapperRegistration

  private var path: String { scratch.path + "/control.sock" }

  init(_ state: WorkerState = .background) throws {
    scratch = try Scratch()
    let configuration = DaemonConfiguration(
      workers: [
        WorkerConfiguration(
          name: id.name, command: ["/nonexistent/clangd"], directory: "/",
          policy: LifecyclePolicy(name: "test"))
      ])
    let program = WrappedProgram(
      id, Inheritance(firstArgument: 0), logPath: nil, closeInherited: { _ in })
    wrapper = try Daemon(
      DaemonSettings(
        configuration: configuration, stateDirectory: scratch.path + "/state",
        socket: scratch.path + "/wrapper.sock", environment: [:], version: "1",
        reload: { ParseResult(value: nil, diagnostics: []) }),
      .wrapper(
        program, log: scratch.path + "/log", pace: SamplingPace(), sharedImages: { 0 }))
    registration = WrapperRegistration(
      of: WrapperRegistration.Wrapper(
        worker: id, socket: "/run/clangd-7.sock", mayBeTerminated: true, canShed: true),
      to: scratch.path + "/control.sock", timers: timers, watches: watches,
      run: wrapper.programRun(of: id))
    for worker in configuration.workers { wrapper.components.declared.addDeclared(worker) }
    guard let unit = wrapper.shared.workers[id] else { throw TestFailure("there is no worker") }
    wrapper.shared.driver.send(.adopted(id, unit.profile, state))
    set(footprint: .megabytes(90))
  }

  func set(footprint: ByteCount) { wrapper.shared.driver.send(.footprint(id, footprint)) }

  func bringToForeground() { wrapper.shared.requests.request(.foreground, id) { _ in } }

  /// Starts the wrapper and a daemon that it finds.
  func begin() throws {
    try startDaemon()
    registration.begin()
    try connect()
  }

  /// Whether the wrapper is connected. Another thread checks whether a daemon listens.
  func isConnected() throws -> Bool {
    try wrapper.shared.services.loop.turn(until: EventLoop.now + .milliseconds(5))
    return watches.active == 1
  }

  func connect() throws {
    if try !eventually({ try isConnected() }) { throw TestFailure("it doesn't connect") }
  }

  /// Repeats the search until it connects: a search is skipped while an earlier one is still under
  /// way.
  func reconnect() throws {
    let isConnected = try eventually {
      timers.advance(by: WrapperRegistration.interval)
      return try self.isConnected()
    }
    if !isConnected { throw TestFailure("it doesn't connect") }
  }

  func startDaemon() throws {
    let listener = try UnixSocket.bound(to: path, .stream)
    #expect(listen(listener.raw, 8) == 0)
    self.listener = listener
  }

  func stopDaemon() {
    listener = nil
    accepted = nil
    framer = LineFramer()
    unlink(path)
  }

  /// The requests that the daemon has received since the last call.
  func heard() throws -> [ControlRequest] {
    guard let listener else { return [] }
    if accepted == nil, listener.inputEvents != 0 {
      accepted = Descriptor(owning: accept(listener.raw, nil, nil))
    }
    while let accepted, accepted.inputEvents != 0 {
      let bytes = try accepted.read(upTo: 1 << 16)
      if bytes.isEmpty { break }
      framer.append(bytes)
    }
    var requests: [ControlRequest] = []
    while let line = try framer.next() {
      requests.append(try WireCodec.decode(ControlRequest.self, from: line))
    }
    return requests
  }
}

@Suite("A wrapper's registration with a daemon") struct WrapperRegistrationTests {
  private let world: World
  private var registration: WrapperRegistration { world.registration }

  init() throws { world = try World() }

  @Test("A wrapper registers its worker, its socket and whether the worker may be terminated")
  func registers() throws {
    try world.begin()
    let request = try #require(try world.heard().first)
    #expect(request.verb == .register && request.worker == "clangd-7")
    let wrapper = try #require(request.wrapper)
    #expect(wrapper.pid == getpid() && wrapper.socket == "/run/clangd-7.sock")
    #expect(
      wrapper.mayBeTerminated == true && wrapper.worker.footprint == ByteCount.megabytes(90).bytes)
  }

  @Test("A wrapper without a daemon looks for one each second at first, and then every 5 s")
  func looksForDaemon() throws {
    registration.begin()
    for _ in 1..<WrapperRegistration.frequentChecks {
      #expect(world.timers.pending == [.seconds(1)])
      world.timers.advance(by: .seconds(1))
    }
    #expect(world.timers.pending == [WrapperRegistration.interval])
    #expect(world.watches.active == 0)
    try world.startDaemon()
    try world.reconnect()
    #expect(try world.heard().count == 1)
  }

  @Test("A worker whose footprint stays is reported every sixth look, and not while it sleeps")
  func regularReports() throws {
    try world.begin()
    world.timers.advance(by: .seconds(11))
    #expect(try world.heard().count == 3)
    let sleeper = try World(.suspended)
    try sleeper.begin()
    sleeper.timers.advance(by: .seconds(600))
    #expect(try sleeper.heard().count == 1)
  }

  @Test(
    "A footprint that changes by an eighth is reported at the next look, if that is over 256 KB",
    arguments: [
      (ByteCount.megabytes(90), ByteCount.megabytes(102), true),
      (.megabytes(90), .megabytes(95), false), (.megabytes(90), .megabytes(20), true),
      (.kilobytes(100), .kilobytes(300), false),
    ])
  func moved(before: ByteCount, after: ByteCount, isReported: Bool) throws {
    world.set(footprint: before)
    try world.begin()
    #expect(try world.heard().count == 1)
    world.set(footprint: after)
    world.timers.advance(by: .seconds(1))
    #expect(
      try world.heard().map { $0.wrapper?.worker.footprint } == (isReported ? [after.bytes] : []))
  }

  @Test("A change of state is reported at once, over the same connection and with the next number")
  func changes() throws {
    try world.begin()
    world.bringToForeground()
    registration.report()
    let requests = try world.heard()
    #expect(requests.map(\.wrapper?.worker.state) == ["background", "foreground"])
    #expect(requests.map(\.id) == [1, 2])
  }

  @Test func `A wrapper notices the daemon's end, and registers with the next daemon`() throws {
    try world.begin()
    #expect(try world.heard().count == 1)
    world.stopDaemon()
    try world.watches.serve()
    #expect(world.watches.active == 0)
    try world.startDaemon()
    try world.reconnect()
    #expect(try world.heard().count == 1)
  }

  @Test func `A wrapper reads the daemon's answers and drops them`() throws {
    try world.begin()
    _ = try world.heard()
    try world.accepted?.writeAll("{\"id\":1,\"result\":\"done\",\"text\":\"known\"}\n")
    try world.watches.serve()
    #expect(world.watches.active == 1)
  }

  @Test("A wrapper closes its connection to a daemon that doesn't read, also within a line")
  func deafDaemon() throws {
    try world.begin()
    for _ in 0..<20_000 where world.watches.active == 1 { registration.report() }
    #expect(world.watches.active == 0)
  }

  @Test("If a wrapper connects to the daemon twice at the same time, it uses one connection")
  func twoWays() throws {
    try world.startDaemon()
    registration.begin()
    registration.report()
    try world.connect()
    for _ in 0..<5 { _ = try world.isConnected() }
    #expect(world.watches.active == 1)
    #expect(try world.heard().count == 1)
  }
}
