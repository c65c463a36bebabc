import Control
import Glibc
import JSONLines
import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("Wrappers that have registered")
struct WrapperRegistryTests {
  private let one = ClientID(number: 1)
  private let other = ClientID(number: 2)

  private func report(_ name: String) -> WrapperReport {
    WrapperReport(
      pid: 1, socket: "/nowhere", worker: WorkerReport(name: name, state: "background"))
  }

  @Test("A wrapper whose connection ends leaves nothing behind, whatever workers it had")
  func forgotten() throws {
    var registry = WrapperRegistry()
    #expect(registry.register(report("one"), from: one, at: .zero) == nil)
    #expect(registry.register(report("other"), from: other, at: .zero) == nil)
    for name in ["a", "b", "c"] { _ = registry.lead(WorkerID(name), one) }
    _ = registry.lead(WorkerID("d"), other)
    #expect(registry.forget(one) == ["a", "b", "c"].map { WorkerID($0) })
    for name in ["a", "b", "c"] { #expect(!registry.leads(WorkerID(name))) }
    #expect(registry.leads(WorkerID("d")))
    #expect(registry.entry(of: "one") == nil)
    #expect(registry.reports(at: .zero).map(\.name) == ["other"])
  }

  @Test func `A connection registers one wrapped worker`() throws {
    var registry = WrapperRegistry()
    #expect(registry.register(report("one"), from: one, at: .zero) == nil)
    #expect(registry.register(report("two"), from: one, at: .zero) != nil)
    #expect(registry.register(report("one"), from: one, at: .zero) == nil)
    #expect(registry.reports(at: .zero).map(\.name) == ["one"])
  }

  @Test("Ages in a wrapper's report continue to grow, except that of a use in progress")
  func ages() throws {
    var registry = WrapperRegistry()
    var front = report("front")
    front.worker.state = "foreground"
    front.worker.lastWake = LastWakeReport(code: "wake_needed", text: "woken", secondsAgo: 1)
    front.worker.secondsAsleep = 2
    _ = registry.register(front, from: one, at: .zero)
    let shown = try #require(registry.reports(at: .zero + .seconds(20)).first)
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

  /// The connection of a relay, which has sent its request.
  private func peer(of mute: Mute, _ loop: EventLoop) throws -> Descriptor {
    try loop.turn { mute.isAsked }
    let peer = mute.accept()
    try loop.turn { peer.inputEvents != 0 }
    return peer
  }

  @Test("A request to a wrapper ends once at its deadline, and closes its connection")
  func deadline() throws {
    let (mute, loop) = (try Mute(), try EventLoop())
    var answers: [ControlResponse] = []
    Relay(
      ControlRequest(id: 7, verb: .hibernate, worker: "web"), to: mute.path,
      jobs: try LoopJobs(loop), loop: loop,
      timeout: .milliseconds(500)
    ) { answers.append($0) }
    let peer = try peer(of: mute, loop)
    try loop.turn { !answers.isEmpty }
    #expect(answers.map(\.result) == [.failed] && answers.first?.id == 7)
    var bytes: [UInt8] = []
    while case let more = try peer.read(upTo: 4096), !more.isEmpty { bytes += more }
    // The end of the file shows that nothing is left open. The request has its deadline.
    var framer = LineFramer()
    framer.append(bytes)
    let line = try framer.next()
    let sent = try WireCodec.decode(ControlRequest.self, from: try #require(line))
    let expires = try #require(sent.expires)
    #expect(expires <= EventLoop.now.nanoseconds)
  }

  @Test(
    "A request to end succeeds if its wrapper ends without an answer, and other requests fail",
    arguments: [ControlRequest.Verb.stop, .terminate, .hibernate])
  func ended(verb: ControlRequest.Verb) throws {
    let (mute, loop) = (try Mute(), try EventLoop())
    var answers: [ControlResponse] = []
    Relay(
      ControlRequest(id: 7, verb: verb, worker: "web"), to: mute.path, jobs: try LoopJobs(loop),
      loop: loop,
      timeout: .seconds(60)
    ) { answers.append($0) }
    var peer: Descriptor? = try peer(of: mute, loop)
    #expect(try peer?.read(upTo: 4096).isEmpty == false)
    peer = nil
    try loop.turn { !answers.isEmpty }
    #expect(answers.map(\.result) == [verb == .hibernate ? .failed : .done])
    if verb != .hibernate { #expect(answers.map(\.text) == ["web has ended"]) }
  }

  @Test func `A request to a wrapper gets the wrapper's answer`() throws {
    let (mute, loop) = (try Mute(), try EventLoop())
    var answers: [ControlResponse] = []
    Relay(
      ControlRequest(id: 7, verb: .wake, worker: "web"), to: mute.path, jobs: try LoopJobs(loop),
      loop: loop,
      timeout: .seconds(60)
    ) { answers.append($0) }
    let peer = try peer(of: mute, loop)
    try peer.writeAll(
      String(
        decoding: WireCodec.line(for: ControlResponse(id: 7, result: .done, text: "awake")),
        as: UTF8.self))
    try loop.turn { !answers.isEmpty }
    #expect(answers.map(\.text) == ["awake"])
  }
}
