import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import TestSupport
import Testing

@testable import Daemon

@Suite("The daemon's own process") struct DaemonProcessTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test(
    "The kernel spares the daemon and not its workers, unless it would choose both first",
    arguments: [
      (0, -900, 0), (-500, -900, 0), (-900, -900, 0), (-1000, -1000, 0), (300, -900, 300),
    ] as [(Int32, Int32, Int32)])
  func score(before: Int32, daemon: Int32, ofWorkers: Int32) throws {
    let score = DaemonOOMScore(path: try scratch.write("score", "\(before)\n"))
    #expect(score.ofWorkers == ofWorkers)
    score.lower { Issue.record("\($0): \($1)") }
    #expect(try Int32(readText(score.path).prefix { $0 != "\n" }) == daemon)
  }

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

  @Test func `Only DORMOUSE_TRACKING=off switches the tracking of writes off`() {
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

  @Test func `The service manager gets each message as one datagram, at any socket`() throws {
    for name in [path, "@dormouse-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"] {
      let socket = try UnixSocket.bound(to: name, .datagram)
      ServiceManager.send("READY=1", to: name)
      ServiceManager.send("STOPPING=1", to: name)
      #expect(try received(socket) == ["READY=1", "STOPPING=1"])
    }
  }

  @Test func `The daemon doesn't wait for a service manager that doesn't read`() throws {
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

@Suite("Signals to the daemon") struct DaemonSignalsTests {
  private let world: AdapterWorld
  /// A child that has ended.
  private let orphan = FakeProcesses { $0.children = [10] }
  private let file = ConfigurationOnDisk()
  private let signals: DaemonSignals

  init() throws {
    world = try AdapterWorld()
    signals = DaemonSignals(
      world.services, orphans: OrphanReaper(timers: world.timers, processes: orphan) { [] },
      reloader: world.makeReloader(file.reader(world.services.jobs)), ending: world.ending)
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func `SIGTERM and SIGINT begin the daemon's end, and a second one ends it`(signal: Int32) throws {
    try world.add("web")
    signals.handle(signal)
    #expect(world.phase.isEnding && !world.ending.hasEnded)
    signals.handle(signal)
    #expect(world.ending.hasEnded && orphan.children == [10])
  }

  @Test func `SIGCHLD reaps children, and ends nothing`() {
    signals.handle(SIGCHLD)
    #expect(orphan.children == [] && !world.phase.isClosing)
  }

  @Test func `The outcome of a reload that SIGHUP asked for is logged, also a failure`() throws {
    signals.handle(SIGHUP)
    #expect(world.logged == "", "the file may be in a file system that doesn't answer")
    try world.turn {
      world.logged.contains("reload: nothing changed: the configuration is the same")
    }
    file.content.withLock { $0 = nil }
    signals.handle(SIGHUP)
    try world.turn {
      world.logged.contains("reload: nothing changed: the configuration has errors")
    }
    #expect(!world.phase.isClosing && orphan.children == [10])
  }
}

@Suite struct `The memory that only the daemon's start needs` {
  private final class World {
    let timers = FakeLoop()
    var states: StartupMemory.States = [WorkerID("web"): .launching]
    var finishes = 0
    var releases = 0

    func begin() {
      StartupMemory.releaseAfterStart(
        timers, { self.states }, finish: { self.finishes += 1 }, release: { self.releases += 1 })
    }
  }

  @Test func `The memory of the start is released once, when no worker is being launched`() {
    let world = World()
    world.begin()
    world.timers.advance(by: .seconds(20))
    #expect(world.releases == 0)
    world.states = [WorkerID("web"): .background]
    world.timers.advance(by: .seconds(10))
    #expect(world.finishes == 1 && world.releases == 0, "what finishes it takes memory itself")
    world.timers.advance(by: .seconds(5))
    #expect(world.releases == 1)
    world.timers.advance(by: .seconds(3600))
    #expect(world.finishes == 1 && world.releases == 1)
    #expect(world.timers.pending == [])
  }

  @Test func `The memory of the start is released when workers have settled`() {
    let world = World()
    world.states = [WorkerID("web"): .background, WorkerID("db"): .background]
    world.begin()
    world.timers.advance(by: .seconds(4))
    world.states[WorkerID("web")] = .suspending
    world.timers.advance(by: .seconds(5))
    world.states[WorkerID("web")] = .suspended
    world.timers.advance(by: .seconds(5))
    #expect(world.releases == 0)
    world.timers.advance(by: .seconds(10))
    #expect(world.releases == 1)
  }

  @Test(arguments: [false, true])
  func `The memory of the start is released after a minute, whatever workers do`(change: Bool) {
    let world = World()
    world.begin()
    for second in 1...60 {
      #expect(world.releases == 0)
      if change {
        world.states[WorkerID("web")] = second.isMultiple(of: 2) ? .background : .suspended
      }
      world.timers.advance(by: .seconds(1))
    }
    #expect(world.releases == 1)
  }
}

@Suite("The trial of encryption") struct EncryptionTrialTests {
  private let world = SenseWorld()
  private let attempts = Pending<JobOutcome<String?>>()
  private let trial: EncryptionTrial

  init() {
    trial = EncryptionTrial(log: world.log) { [attempts] in attempts.add($0) }
  }

  private func policy(_ encrypts: Bool, enabled: Bool = true) -> LifecyclePolicy {
    var policy = LifecyclePolicy(name: "test")
    policy.hibernate.enabled = enabled
    policy.hibernate.encrypt = encrypts
    return policy
  }

  private func configuration(
    _ policy: LifecyclePolicy, _ worker: LifecyclePolicy
  ) -> DaemonConfiguration {
    DaemonConfiguration(
      policy: policy,
      workers: [
        WorkerConfiguration(name: "web", command: ["none"], directory: "/", policy: worker)
      ])
  }

  @Test func `The encryption library is loaded only if a policy wants encrypted images`() {
    trial.tryEncryption(for: configuration(policy(false), policy(false)))
    trial.tryEncryption(for: configuration(policy(true, enabled: false), policy(false)))
    #expect(attempts.count == 0)
    trial.tryEncryption(for: configuration(policy(true), policy(false)))
    trial.tryEncryption(for: configuration(policy(false), policy(true)))
    #expect(attempts.count == 2)
    attempts.answer(.done(nil))
    #expect(world.logged.isEmpty)
  }

  @Test func `An error of the encryption trial is logged once, and a lost trial isn't`() {
    for outcome in [JobOutcome<String?>.overdue, .busy, .done("no libcrypto.so.3")] {
      trial.tryEncryption(for: configuration(policy(true), policy(true)))
      attempts.answer(outcome)
    }
    #expect(world.logged.count == 1)
    #expect(world.logged.first?.contains("no libcrypto.so.3;") == true)
  }
}
