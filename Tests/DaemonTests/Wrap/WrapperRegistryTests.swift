import Control
import Glibc
import JSONLines
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("Wrappers that have registered")
struct RegisteredWrapperTests {
  private let world = WrapperWorld()

  @Test func `A connection registers one wrapped worker`() {
    #expect(world.register(WrapperWorld.report("one")) == nil)
    #expect(world.register(WrapperWorld.report("two")) != nil)
    #expect(world.register(WrapperWorld.report("one")) == nil)
    #expect(world.wrappers.reports().map(\.name) == ["one"])
  }

  @Test func `Ages in a wrapper's report grow, except that of a use in progress`() throws {
    var front = WrapperWorld.report("front", "foreground")
    front.worker.lastWake = LastWakeReport(code: "wake_needed", text: "woken", secondsAgo: 1)
    front.worker.secondsAsleep = 2
    #expect(world.register(front) == nil)
    world.timers.advance(by: .seconds(20))
    let shown = try #require(world.wrappers.reports().first)
    #expect(shown.secondsInState == 20 && shown.secondsSinceUse == 0)
    #expect(shown.lastWake?.secondsAgo == 21 && shown.secondsAsleep == 22)
  }
}

@Suite("A request that is passed on to a wrapper", .serialized)
struct RelayTests {
  /// A wrapper that accepts and reads, and sends nothing.
  private final class Mute {
    private let scratch: Scratch
    let listener: Descriptor
    var path: String { scratch.path + "/socket" }

    init() throws {
      scratch = try Scratch()
      listener = try UnixSocket.bound(to: scratch.path + "/socket", .stream)
      listen(listener.raw, 8)
    }

    func accept() -> Descriptor { Descriptor(owning: Glibc.accept(listener.raw, nil, nil)) }

    var isAsked: Bool { listener.inputEvents != 0 }
  }

  /// Passes a request about web on to the wrapper.
  private func relay(
    _ verb: ControlRequest.Verb, to mute: Mute, _ loop: EventLoop, timeout: Duration = .seconds(60)
  ) throws -> Recorded<ControlResponse> {
    let heard = Recorded<ControlResponse>()
    Relay(
      ControlRequest(id: 7, verb: verb, worker: "web"), to: mute.path, jobs: try LoopJobs(loop),
      loop: loop, timeout: timeout
    ) { heard.all.append($0) }
    return heard
  }

  /// The connection of a relay, which has sent its request.
  private func peer(of mute: Mute, _ loop: EventLoop) throws -> Descriptor {
    try loop.turn { mute.isAsked }
    let peer = mute.accept()
    try loop.turn { peer.inputEvents != 0 }
    return peer
  }

  @Test func `A request to a wrapper ends once at its deadline, with its connection`() throws {
    let (mute, loop) = (try Mute(), try EventLoop())
    let heard = try relay(.hibernate, to: mute, loop, timeout: .milliseconds(500))
    let peer = try peer(of: mute, loop)
    try loop.turn { !heard.all.isEmpty }
    #expect(heard.all.map(\.result) == [.failed] && heard.all.first?.id == 7)
    var bytes: [UInt8] = []
    while case let more = try peer.read(upTo: 4096), !more.isEmpty { bytes += more }
    // The end of the file shows that nothing is left open. The request has its deadline.
    var framer = LineFramer()
    framer.append(bytes)
    let line = try framer.next()
    let sent = try WireCodec.decode(ControlRequest.self, from: try #require(line))
    #expect(try #require(sent.expires) <= EventLoop.now.nanoseconds)
  }

  @Test(arguments: [ControlRequest.Verb.stop, .terminate, .hibernate])
  func `Only a request to end succeeds if its wrapper ends`(verb: ControlRequest.Verb) throws {
    let (mute, loop) = (try Mute(), try EventLoop())
    let heard = try relay(verb, to: mute, loop)
    var peer: Descriptor? = try peer(of: mute, loop)
    #expect(try peer?.read(upTo: 4096).isEmpty == false)
    peer = nil
    try loop.turn { !heard.all.isEmpty }
    #expect(heard.all.map(\.result) == [verb == .hibernate ? .failed : .done])
    if verb != .hibernate { #expect(heard.all.map(\.text) == ["web has ended"]) }
  }

  @Test func `A request to a wrapper gets the wrapper's answer`() throws {
    let (mute, loop) = (try Mute(), try EventLoop())
    let heard = try relay(.wake, to: mute, loop)
    let peer = try peer(of: mute, loop)
    try peer.writeAll(
      String(
        decoding: WireCodec.line(for: ControlResponse(id: 7, result: .done, text: "awake")),
        as: UTF8.self))
    try loop.turn { !heard.all.isEmpty }
    #expect(heard.all.map(\.text) == ["awake"])
  }
}

@Suite("The policy that is built into wrap") struct WrappingPolicyTests {
  private let policy = LifecyclePolicy.wrapping()

  @Test func `It hibernates servers of any size within two minutes of their last use`() throws {
    let suspended = policy.foreground.idleAfter + (try #require(policy.background.suspendAfter))
    // Ten seconds remain for the samples in which a use and its end are seen.
    #expect(suspended + (try #require(policy.hibernate.after)) == .seconds(110))
    #expect(policy.hibernate.maxFootprint == nil && policy.foreground.mode == .activity)
  }
}

@Suite("How the daemon reaches registered wrappers") struct WrapperSocketsTests {
  private let world: AdapterWorld
  private let sockets: WrapperSockets

  init() throws {
    world = try AdapterWorld()
    sockets = WrapperSockets(
      services: world.services,
      control: ControlServer(
        path: world.scratch.path + "/control.sock", world.services.loop, world.log))
  }

  @Test func `Only a process that ran when the wrapper registered is killed`() throws {
    // The pid is the test's own process. If it were killed, the test couldn't pass.
    #expect(try !sockets.kill(getpid(), startedBefore: .zero))
    #expect(try !sockets.kill(1 << 22, startedBefore: EventLoop.now), "no process has it")
  }

  @Test func `A wrapper whose socket isn't there answers that it has ended, once`() throws {
    var responses: [ControlResponse.Result] = []
    sockets.ask(
      ControlRequest(id: 3, verb: .ps), at: world.scratch.path + "/none.sock", timeout: .seconds(60)
    ) { responses.append($0.result) }
    #expect(responses == [])
    try world.turn { !responses.isEmpty }
    #expect(responses.count == 1 && responses[0] != .done)
  }
}
