import Control
import Daemon
import DaemonFakes
import Glibc
import JSONLines
import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Wrap

/// A wrapper, and the daemon's end of its connections: real sockets, no process.
private final class World: RegistrationHost {
  let timers = FakeTimers()
  let watches = FakeWatches()
  private let scratch: Scratch
  private var listener: Descriptor?
  private(set) var accepted: Descriptor?
  private var framer = LineFramer()
  private(set) var tries = 0
  /// A way to the socket that doesn't answer: the test does.
  var isSlow = false
  private(set) var waiting: [(Descriptor?) -> Void] = []

  var isRunning = true
  var footprint = ByteCount.megabytes(90)
  var state = "foreground"

  private(set) lazy var registration = WrapperRegistration(
    of: WrapperRegistration.Wrapper(
      worker: WorkerID("clangd-7"), socket: "/run/clangd-7.sock", mayBeTerminated: true,
      canShed: true),
    to: path, timers: timers, watches: watches, host: self)

  var path: String { scratch.path + "/control.sock" }

  init() throws { scratch = try Scratch() }

  func withReport(then: @escaping (WorkerReport) -> Void) {
    var report = WorkerReport(name: "clangd-7", state: state)
    report.footprint = footprint.bytes
    then(report)
  }

  func connect(to path: String, then: @escaping (Descriptor?) -> Void) {
    tries += 1
    if isSlow { return waiting.append(then) }
    then(try? UnixSocket.connected(to: path, .stream))
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

  /// What the daemon has been sent since the last call.
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
    try world.startDaemon()
    registration.begin()
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
    world.timers.advance(by: .seconds(WrapperRegistration.firstLooks - 1))
    #expect(world.tries == WrapperRegistration.firstLooks)
    world.timers.advance(by: .seconds(50))
    #expect(world.tries == WrapperRegistration.firstLooks + 10)
    try world.startDaemon()
    world.timers.advance(by: WrapperRegistration.interval)
    #expect(try world.heard().count == 1)
  }

  @Test("A worker whose footprint stays is reported every sixth look, and not while it sleeps")
  func regularReports() throws {
    try world.startDaemon()
    registration.begin()
    world.timers.advance(by: .seconds(11))
    #expect(try world.heard().count == 3)
    world.isRunning = false
    world.timers.advance(by: .seconds(600))
    #expect(try world.heard().isEmpty)
  }

  @Test(
    "A footprint that changes by an eighth is reported at the next look, if that is over 256 KB",
    arguments: [
      (ByteCount.megabytes(90), ByteCount.megabytes(102), true),
      (.megabytes(90), .megabytes(95), false), (.megabytes(90), .megabytes(20), true),
      (.kilobytes(100), .kilobytes(300), false),
    ])
  func moved(before: ByteCount, after: ByteCount, isReported: Bool) throws {
    world.footprint = before
    try world.startDaemon()
    registration.begin()
    #expect(try world.heard().count == 1)
    world.footprint = after
    world.timers.advance(by: .seconds(1))
    #expect(
      try world.heard().map { $0.wrapper?.worker.footprint } == (isReported ? [after.bytes] : []))
  }

  @Test("A change of state is reported at once, over the same connection and with the next number")
  func changes() throws {
    try world.startDaemon()
    registration.begin()
    world.state = "suspended"
    registration.report()
    let requests = try world.heard()
    #expect(requests.map(\.wrapper?.worker.state) == ["foreground", "suspended"])
    #expect(requests.map(\.id) == [1, 2] && world.tries == 1)
  }

  @Test("A wrapper notices the daemon's end, and registers with the next daemon")
  func daemonEnds() throws {
    try world.startDaemon()
    registration.begin()
    #expect(try world.heard().count == 1)
    world.stopDaemon()
    try world.watches.serve()
    #expect(world.watches.active == 0)
    try world.startDaemon()
    world.timers.advance(by: .seconds(1))
    #expect(try world.heard().count == 1)
  }

  @Test("A wrapper reads the daemon's answers and drops them")
  func answers() throws {
    try world.startDaemon()
    registration.begin()
    _ = try world.heard()
    try world.accepted?.writeAll("{\"id\":1,\"result\":\"done\",\"text\":\"known\"}\n")
    try world.watches.serve()
    #expect(world.watches.active == 1)
  }

  @Test("A wrapper closes its connection to a daemon that doesn't read, also within a line")
  func deafDaemon() throws {
    try world.startDaemon()
    registration.begin()
    for _ in 0..<20_000 where world.watches.active == 1 { registration.report() }
    #expect(world.watches.active == 0)
  }

  @Test("If a wrapper connects to the daemon twice at the same time, it uses one connection")
  func twoWays() throws {
    try world.startDaemon()
    world.isSlow = true
    registration.begin()
    registration.report()
    #expect(world.waiting.count == 2)
    world.isSlow = false
    for then in world.waiting {
      world.connect(to: world.path, then: then)
    }
    #expect(world.watches.active == 1)
    #expect(try world.heard().count == 1)
  }
}
