import CLinux
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

extension Trait where Self == ConditionTrait {
  /// For tests of workers that rest frozen.
  static var needsCgroup: Self {
    .enabled(if: Victim.cgroupRoot != nil, "no cgroup for workers can be made here")
  }
}

/// A program under test that is hibernated. The test has its stdin and stdout.
final class Victim {
  let process: SpawnedProcess
  let cgroup: WorkerCgroup?
  private let talk: Talk

  /// The way in which a victim rests while it is hibernated.
  enum Parking: String, CaseIterable, CustomTestStringConvertible {
    case frozen, traced
    var testDescription: String { rawValue }

    /// The ways that are possible. `frozen` needs a cgroup for the test on this machine.
    static let available: [Parking] = {
      if Victim.cgroupRoot != nil { return [.frozen, .traced] }
      notTestedHere("no cgroup for workers can be made here")
      return [.traced]
    }()
  }

  static let cgroupRoot = try? CgroupRoot.detect(name: "dormouse-tests-\(getpid())")
  private static let count = Atomic(0)

  init(_ command: [String], parking: Parking = .traced, environment: [String: String] = [:]) throws
  {
    let toChild = try Descriptor.pipe()
    let fromChild = try Descriptor.pipe()
    cgroup = try Self.makeGroup(for: parking)
    let path = Program.path
    let executable = try #require(resolveExecutable(command[0], path: path))
    var environment = environment
    environment["PATH"] = path
    process = try spawn(
      SpawnRequest(
        path: executable, arguments: command, environment: environment, directory: "/tmp",
        input: toChild.reading.raw, output: fromChild.writing.raw, error: 2,
        cgroup: cgroup?.directory.raw))
    talk = Talk(input: toChild.writing, output: fromChild.reading, name: "pid \(process.pid)")
  }

  /// Starts a program, and waits until it says that it is ready.
  convenience init(
    ready command: [String], parking: Parking = .traced, environment: [String: String] = [:]
  ) throws {
    try self.init(command, parking: parking, environment: environment)
    let first = try line()
    guard first.hasPrefix("ready") else { throw TestFailure("it isn't ready: \(first)") }
  }

  /// Starts a program of `Fixtures`, and waits until it says that it is ready.
  convenience init(
    ready fixture: String, _ arguments: String..., parking: Parking = .traced,
    environment: [String: String] = [:]
  ) throws {
    try self.init(
      ready: [Fixture.compile(fixture)] + arguments, parking: parking, environment: environment)
  }

  static func makeGroup(for parking: Parking) throws -> WorkerCgroup? {
    guard parking == .frozen, let root = cgroupRoot else { return nil }
    let number = count.add(1, ordering: .relaxed).newValue
    return try WorkerCgroup.create(in: root, name: "victim-\(number)")
  }

  deinit {
    kill(-process.pid, SIGKILL)
    kill(process.pid, SIGKILL)
    try? cgroup?.kill()
    reap(process.pid)
    try? cgroup?.remove(until: Deadline(in: .seconds(60)))
  }

  var target: HibernationTarget {
    HibernationTarget(
      name: "victim-\(process.pid)", root: process.identity, session: process.pid, cgroup: cgroup)
  }

  func send(_ line: String) throws { try talk.send(line) }
  func line() throws -> String { try talk.line() }
  func ask(_ line: String) throws -> String { try talk.ask(line) }
  /// True if there is output that hasn't been read yet.
  var hasSaid: Bool { get throws { try talk.hasSome } }

  /// Suspends the program as a worker: frozen, or stopped.
  func suspend() throws {
    if let cgroup {
      try cgroup.freeze(until: Deadline(in: .seconds(Talk.timeout)))
    } else {
      _ = try ProcessTree.stopAll(
        root: process.identity, session: process.pid,
        until: Deadline(in: .seconds(Talk.timeout)))
    }
  }

  /// Returns the anonymous memory of all processes in RAM, in bytes.
  func anonymousMemory() throws -> UInt64 { try anonymousBytes(of: target.discover().pids) }

  /// Returns the memory of all processes, in which what they share counts once.
  func proportionalMemory() throws -> Int64 {
    try Footprint.measure(target.discover().pids).proportional
  }
}

/// Reaps a child, and waits only for a limited time, because a failed test may have left it traced.
func reap(_ pid: Int32) {
  let deadline = Deadline(in: .seconds(2))
  while waitpid(pid, nil, WNOHANG) == 0, !deadline.hasPassed { usleep(1000) }
}

/// Runs `body` while another thread traces the process, as a debugger does.
func whileTraced<Result>(_ pid: Int32, _ body: () throws -> Result) rethrows -> Result {
  let (attached, release) = (OneTimeEvent(), OneTimeEvent())
  let debugger = WorkQueue(name: "debugger")
  debugger.submit {
    let session = try? TraceSession.seize(pid: pid)
    attached.raise()
    release.wait()
    session?.detach()
  }
  attached.wait()
  defer {
    release.raise()
    debugger.perform {}
  }
  return try body()
}

/// Returns the anonymous memory of the processes in bytes, without areas under MADV_HUGEPAGE.
///
/// In such areas khugepaged can fill holes with zero pages at any time. A hibernation searches for
/// them once; those that come after that stay (their content is right, and the area isn't larger
/// than before).
func anonymousBytes(of pids: [Int32]) throws -> UInt64 {
  try pids.reduce(0) { total, pid in
    var pending: UInt64 = 0
    var sum: UInt64 = 0
    for line in try readText("/proc/\(pid)/smaps").split(separator: "\n") {
      let fields = line.split(separator: " ")
      if line.hasPrefix("Anonymous:") { pending = UInt64(fields[1]) ?? 0 }
      if line.hasPrefix("VmFlags:"), !fields.contains("hg") { sum += pending * 1024 }
    }
    return total + sum
  }
}
