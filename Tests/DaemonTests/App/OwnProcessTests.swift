import Glibc
import Hibernation
import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("The daemon's own process") struct OwnProcessTests {
  private final class Score: OwnOOMScore {
    var own: Int32?
    var refusal: Int32?
    private(set) var values: [Int32] = []
    private(set) var spawned: [Int32] = []

    init(_ own: Int32?) { self.own = own }
    func set(_ score: Int32) throws(SystemCallError) {
      if let refusal { throw SystemCallError("write", on: "oom_score_adj", code: refusal) }
      values.append(score)
    }
    func spawn(with score: Int32) { spawned.append(score) }
  }

  private final class Lines { var all: [String] = [] }
  private let lines = Lines()

  private func spare(_ score: Score) {
    OwnProcess.spareFromTheKernel(score) { [lines] in lines.all.append("\($0): \($1)") }
  }

  @Test("The daemon is spared by the kernel, and its workers are not")
  func spared() {
    let score = Score(0)
    spare(score)
    #expect(score.values == [-900] && score.spawned == [0] && lines.all == [])
  }

  @Test("A daemon that its unit protects more than that stays so, and its workers aren't protected")
  func protected() {
    for own: Int32 in [-900, -1000] {
      let score = Score(own)
      spare(score)
      #expect(score.values == [] && score.spawned == [0])
    }
  }

  @Test("A daemon that the kernel would choose first passes that on to its workers")
  func exposed() {
    let score = Score(300)
    spare(score)
    #expect(score.values == [-900] && score.spawned == [300])
  }

  @Test("A daemon without the right to protect itself logs that, and starts")
  func refused() {
    let score = Score(0)
    score.refusal = EACCES
    spare(score)
    #expect(lines.all.count == 1 && score.spawned == [0])
    #expect(lines.all[0].hasPrefix("info: the kernel's OOM killer may choose the daemon: "))
  }

  @Test("Without /proc nothing is changed")
  func unknown() {
    let score = Score(nil)
    spare(score)
    #expect(score.values == [] && score.spawned == [] && lines.all == [])
  }

  @Test("A wrapper's own score stays as it is, and its program gets that of a worker")
  func wrapper() {
    let score = Score(-500)
    #expect(OwnProcess.useWorkersOOMScore(score) == -500)
    #expect(score.values == [] && score.spawned == [0])
  }

  @Test("Only `DORMOUSE_TRACKING=off` switches the tracking of writes off")
  func tracking() {
    var detected = KernelFeatures.detect()
    detected.writeTracking = true
    for (value, isOn) in [(nil, true), ("", true), ("on", true), ("off", false)] {
      #expect(OwnProcess.kernelFeatures(detected, tracking: value).writeTracking == isOn)
    }
    detected.writeTracking = false
    #expect(!OwnProcess.kernelFeatures(detected, tracking: "on").writeTracking)
  }
}

@Suite("The service manager that started the daemon") struct ServiceManagerTests {
  private let scratch: Scratch
  private let path: String

  init() throws {
    scratch = try Scratch()
    path = scratch.path + "/notify"
  }

  private func received(_ socket: Descriptor) throws -> [String] {
    var texts: [String] = []
    while try pollDescriptor(socket.raw, for: POLLIN, until: Deadline(in: .zero)) {
      texts.append(String(decoding: try socket.read(upTo: 4096), as: UTF8.self))
    }
    return texts
  }

  @Test("It gets each message as one datagram")
  func sent() throws {
    let socket = try UnixSocket.bound(to: path, .datagram)
    ServiceManager.send("READY=1", to: path)
    ServiceManager.send("STOPPING=1", to: path)
    #expect(try received(socket) == ["READY=1", "STOPPING=1"])
  }

  @Test("An abstract socket is reached as well")
  func abstract() throws {
    let name = "@dormouse-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    let socket = try UnixSocket.bound(to: name, .datagram)
    ServiceManager.send("READY=1", to: name)
    #expect(try received(socket) == ["READY=1"])
  }

  @Test("Without one, or with one that has ended or doesn't read, the daemon waits for nothing")
  func absent() throws {
    ServiceManager.send("READY=1", to: nil)
    ServiceManager.send("READY=1", to: "")
    ServiceManager.send("READY=1", to: path)
    ServiceManager.send("READY=1", to: String(repeating: "/long", count: 100))
    let stream = try UnixSocket.bound(to: path, .stream)
    ServiceManager.send("READY=1", to: path)
    withExtendedLifetime(stream) {}
    let socket = try UnixSocket.bound(to: path, .datagram)
    // Its queue is full long before.
    for _ in 0..<10_000 { ServiceManager.send("READY=1", to: path) }
    #expect(try received(socket).allSatisfy { $0 == "READY=1" })
  }
}
