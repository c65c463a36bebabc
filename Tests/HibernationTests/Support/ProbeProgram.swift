import CLinux
import Glibc
import Testing

@testable import Hibernation
@testable import Linux

/// A worker whose daemon (Tests/HibernateProbe) may die.
final class Probe {
  let daemon: SpawnedProcess
  let victim: ProcessIdentity
  let cgroup: WorkerCgroup?
  let image: String
  let talk: Talk
  let reports: Talk
  private let orders: Descriptor
  private let fifo = Fixture.imagePath() + ".fifo"

  /// The path of the program beside the test bundle.
  static let executable: String = {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = max(0, readlink("/proc/self/exe", &buffer, buffer.count))
    let executable = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let directory = executable.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 }
    return directory + "/HibernateProbe"
  }()

  /// The directory of `CallsBeforeStop`, which all daemons of this process's workers and this
  /// process share.
  private static let calls: String = {
    let path = Fixture.imagePath() + ".calls"
    mkdir(path, 0o700)
    CallsBeforeStop.keep(in: path)
    return path
  }()

  /// Starts a program under a daemon, and waits until the program says that it is ready.
  ///
  /// - Parameters:
  ///   - time: the daemon dies when it passes `fault` for the first, second, … time.
  ///   - isLazy: the daemon restores lazily.
  ///   - overlays: keeps bases, `tracked` or `compared`.
  ///   - hasStandby: a standby pager continues when the daemon dies.
  ///   - lock: the file that the next daemon locks. Until then the standby pager keeps trims.
  ///   - forced: only the thread that traces the worker may write its read-only pages (simulated).
  ///   - variables: more of the probe's environment.
  ///   - image: the path of the worker's image.
  init(
    _ command: [String], parking: Victim.Parking, fault: FaultPoint? = nil, time: Int = 1,
    isLazy: Bool = false, overlays: String? = nil, hasStandby: Bool = false,
    lock: String? = nil, forced: Bool = false, variables: [String: String] = [:],
    image: String = Fixture.imagePath()
  ) throws {
    self.image = image
    // When the daemon dies, its worker becomes a child of this process, so that its end can be
    // seen.
    _ = clinux_become_subreaper()
    let toVictim = try Descriptor.pipe()
    let fromVictim = try Descriptor.pipe()
    let fromDaemon = try Descriptor.pipe()
    let fifo = self.fifo
    _ = try systemCall("mkfifo", on: fifo) { mkfifo(fifo, 0o600) }
    cgroup = try Victim.makeGroup(for: parking)
    var environment = Self.environment(
      fault, time: time, isLazy: isLazy, hasStandby: hasStandby, forced: forced)
    environment.merge(variables) { $1 }
    environment["DORMOUSE_OVERLAY"] = overlays
    if hasStandby, let lock { environment["DORMOUSE_STANDBY"] = lock }
    daemon = try spawn(
      SpawnRequest(
        path: Self.executable,
        arguments: ["HibernateProbe", "serve", fifo, cgroup?.path ?? "-", image, "--"] + command,
        environment: environment, directory: "/tmp", input: toVictim.reading.raw,
        output: fromVictim.writing.raw, error: fromDaemon.writing.raw))
    talk = Talk(input: toVictim.writing, output: fromVictim.reading, name: "the victim")
    reports = Talk(input: nil, output: fromDaemon.reading, name: "the probe")
    let fields = try reports.line().split(separator: " ")
    victim = ProcessIdentity(
      pid: try #require(Int32(fields[1])), startTime: try #require(UInt64(fields[2])))
    // With O_WRONLY, this would wait forever if the daemon has died.
    orders = try Descriptor.open(fifo, O_RDWR)
    try #require(try talk.line().hasPrefix("ready"))
  }

  static func environment(
    _ fault: FaultPoint?, time: Int = 1, isLazy: Bool = false, hasStandby: Bool = false,
    forced: Bool = false
  ) -> [String: String] {
    var environment = ["PATH": getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"]
    environment["DORMOUSE_CALLS"] = calls
    // Under scripts/sanitize, a daemon's findings count, too.
    for name in ["ASAN_OPTIONS", "TSAN_OPTIONS"] {
      environment[name] = getenv(name).map { String(cString: $0) }
    }
    // If the tests' own environment has the variable, all tests run under that rule.
    if forced || getenv("DORMOUSE_TEST_PROC_MEM") != nil {
      environment["DORMOUSE_TEST_PROC_MEM"] = "1"
    }
    if hasStandby { environment["DORMOUSE_STANDBY"] = "-" }
    if isLazy { environment["DORMOUSE_RESUME"] = "lazy" }
    if let fault { environment["DORMOUSE_FAULT"] = "\(fault.rawValue)@\(time)" }
    return environment
  }

  deinit {
    kill(daemon.pid, SIGKILL)
    kill(-victim.pid, SIGKILL)
    kill(victim.pid, SIGKILL)
    try? cgroup?.kill()
    reap(daemon.pid)
    reap(victim.pid)
    try? cgroup?.remove(until: Deadline(in: .seconds(60)))
    for path in [image, image + ".base", fifo] { unlink(path) }
  }

  var target: HibernationTarget {
    HibernationTarget(
      name: "victim", root: victim, session: victim.pid, cgroup: cgroup)
  }

  func order(_ what: String) throws { try orders.writeAll(what + "\n") }

  func perform(_ what: String) throws {
    try order(what)
    let answer = try reports.line()
    try #require(answer.hasPrefix("done"), "\(what): \(answer)")
  }

  /// Waits until the daemon has ended, at its fault point or by `signal`.
  func daemonDies(by signal: Int32? = nil) throws {
    if let signal { kill(daemon.pid, signal) }
    let gone = try pollDescriptor(
      daemon.pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(Talk.timeout)))
    try #require(gone, "the probe hasn't died")
  }

  /// Gives an order during which the daemon dies, at its fault point.
  func die(during order: String) throws {
    try self.order(order)
    try daemonDies()
  }

  /// Runs a probe to its end, and returns its output.
  static func run(
    _ arguments: [String], prefix: [String] = [], executable: String = Probe.executable
  ) throws -> String {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let output = try Descriptor.pipe()
    let command = prefix + [executable] + arguments
    let run = try spawn(
      SpawnRequest(
        path: try #require(Program.find(command[0])), arguments: command,
        environment: environment(nil), directory: "/tmp", input: null.raw, output: null.raw,
        error: output.writing.raw))
    defer {
      kill(run.pid, SIGKILL)
      reap(run.pid)
    }
    let ended = try pollDescriptor(
      run.pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(5 * Talk.timeout)))
    try #require(ended, "the probe doesn't end")
    return try String(decoding: output.reading.read(upTo: 65536), as: UTF8.self)
  }

  /// Recovers the worker with a second daemon, which dies at `fault`.
  func recoverAndDie(at fault: FaultPoint) throws {
    let status = try recover(Self.environment(fault))
    #expect(status & 0x7f == SIGKILL, "the second daemon hasn't died at \(fault)")
  }

  /// Recovers the worker with a second daemon. Returns its status.
  func recover(_ environment: [String: String]) throws -> Int32 {
    try Fixture.run(
      [
        Self.executable, "recover", "\(victim.pid)", "\(victim.startTime)", cgroup?.path ?? "-",
        image,
      ], environment: environment)
  }
}
