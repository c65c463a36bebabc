import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("The daemon's own process") struct DaemonProcessTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Does what a process with this `oom_score_adj` does at its start.
  private func start(
    with adjustment: Int32
  ) throws -> (daemon: String, ofWorkers: Int32?, lines: [String]) {
    let score = DaemonOOMScore(path: try scratch.write("score", "\(adjustment)\n"))
    let ofWorkers = score.ofWorkers
    var lines: [String] = []
    score.lower { lines.append("\($0): \($1)") }
    return (try readText(score.path), ofWorkers, lines)
  }

  @Test("The daemon is spared by the kernel, and its workers are not")
  func spared() throws { #expect(try start(with: 0) == ("-900", 0, [])) }

  @Test("A daemon that its unit protects more than that stays so, and its workers aren't protected")
  func protected() throws {
    for adjustment: Int32 in [-900, -1000] {
      #expect(try start(with: adjustment) == ("\(adjustment)\n", 0, []))
    }
  }

  @Test("A daemon that the kernel would choose first passes that on to its workers")
  func exposed() throws { #expect(try start(with: 300) == ("-900", 300, [])) }

  @Test func `A daemon without the right to protect itself logs that, and starts`() {
    // Not even root can write this number.
    let score = DaemonOOMScore(path: "/proc/sys/kernel/ngroups_max")
    var lines: [String] = []
    score.lower { lines.append("\($0): \($1)") }
    #expect(lines.count == 1 && score.ofWorkers != nil)
    #expect(lines[0].hasPrefix("info: the kernel's OOM killer may choose the daemon: "))
  }

  @Test func `Without /proc nothing is changed`() {
    let score = DaemonOOMScore(path: scratch.path + "/none")
    score.lower { Issue.record("\($0): \($1)") }
    #expect(score.ofWorkers == nil && isAbsent(score.path))
  }

  @Test("A wrapper that is protected gives its program the score of a worker")
  func wrapper() throws { #expect(try start(with: -500).ofWorkers == 0) }

  @Test("Only `DORMOUSE_TRACKING=off` switches the tracking of writes off")
  func tracking() {
    var detected = KernelFeatures.detect()
    detected.writeTracking = true
    for (value, isOn) in [(nil, true), ("", true), ("on", true), ("off", false)] {
      #expect(DaemonProcess.kernelFeatures(detected, tracking: value).writeTracking == isOn)
    }
    detected.writeTracking = false
    #expect(!DaemonProcess.kernelFeatures(detected, tracking: "on").writeTracking)
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

  @Test func `The service manager gets each message as one datagram`() throws {
    let socket = try UnixSocket.bound(to: path, .datagram)
    ServiceManager.send("READY=1", to: path)
    ServiceManager.send("STOPPING=1", to: path)
    #expect(try received(socket) == ["READY=1", "STOPPING=1"])
  }

  @Test func `A service manager at an abstract socket is reached`() throws {
    let name = "@dormouse-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    let socket = try UnixSocket.bound(to: name, .datagram)
    ServiceManager.send("READY=1", to: name)
    #expect(try received(socket) == ["READY=1"])
  }

  @Test("The daemon doesn't wait for a service manager that is absent, has ended or doesn't read")
  func absent() throws {
    ServiceManager.send("READY=1", to: nil)
    ServiceManager.send("READY=1", to: "")
    ServiceManager.send("READY=1", to: path)
    ServiceManager.send("READY=1", to: String(repeating: "/long", count: 100))
    let stream = try UnixSocket.bound(to: path, .stream)
    ServiceManager.send("READY=1", to: path)
    withExtendedLifetime(stream) {}
    let socket = try UnixSocket.bound(to: path, .datagram)
    // The queue of the socket is full long before the last message.
    for _ in 0..<10_000 { ServiceManager.send("READY=1", to: path) }
    #expect(try received(socket).allSatisfy { $0 == "READY=1" })
  }
}
