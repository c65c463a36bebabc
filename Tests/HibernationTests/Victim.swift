import CLinux
import Glibc
import Synchronization
import Testing

@testable import Hibernation
@testable import Linux

/// A program under test that is hibernated, with its stdin and stdout in our hands.
final class Victim {
  let process: SpawnedProcess
  let cgroup: WorkerCgroup?
  private let input: Descriptor
  private let output: Descriptor
  private var buffered: [UInt8] = []

  /// Where a victim rests while it is hibernated.
  enum Rest: String, CaseIterable, CustomTestStringConvertible {
    case frozen, traced
    var testDescription: String { rawValue }

    /// Frozen only where this machine lets us have a cgroup.
    static let available: [Rest] = Victim.cgroupRoot == nil ? [.traced] : [.frozen, .traced]
  }

  static let cgroupRoot = try? CgroupRoot.detect(name: "dormouse-tests-\(getpid())")
  private static let count = Atomic(0)

  init(_ command: [String], rest: Rest = .traced, environment: [String: String] = [:]) throws {
    let toChild = try Self.pipe()
    let fromChild = try Self.pipe()
    let number = Self.count.add(1, ordering: .relaxed).newValue
    if rest == .frozen, let root = Self.cgroupRoot {
      cgroup = try WorkerCgroup.create(in: root, name: "victim-\(number)")
    } else {
      cgroup = nil
    }
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    let executable = try #require(resolveExecutable(command[0], path: path))
    var environment = environment
    environment["PATH"] = path
    process = try spawn(
      SpawnRequest(
        path: executable, arguments: command, environment: environment, directory: "/tmp",
        input: toChild.read.raw, output: fromChild.write.raw, error: 2,
        cgroup: cgroup?.directory.raw))
    input = toChild.write
    output = fromChild.read
  }

  deinit {
    kill(-process.pid, SIGKILL)
    kill(process.pid, SIGKILL)
    try? cgroup?.kill()
    var status: Int32 = 0
    waitpid(process.pid, &status, 0)
    try? cgroup?.remove(until: Deadline(in: .seconds(5)))
  }

  var target: HibernationTarget {
    HibernationTarget(
      name: "victim-\(process.pid)", root: process.identity, session: process.pid, cgroup: cgroup)
  }

  func send(_ line: String) throws { try input.writeAll(line + "\n") }

  /// One line, without its end; fails the test after 20 s.
  func line() throws -> String {
    let deadline = Deadline(in: .seconds(20))
    while true {
      if let end = buffered.firstIndex(of: 10) {
        let line = String(decoding: buffered[..<end], as: UTF8.self)
        buffered.removeFirst(end + 1)
        return line
      }
      try #require(
        try pollDescriptor(output.raw, for: POLLIN, until: deadline),
        "no line from pid \(process.pid) in 20 s")
      let part = try output.read(upTo: 4096)
      try #require(!part.isEmpty, "pid \(process.pid) has closed its output")
      buffered += part
    }
  }

  func ask(_ line: String) throws -> String {
    try send(line)
    return try self.line()
  }

  /// Brings it to where a suspended worker is: frozen, or stopped.
  func suspend() throws {
    if let cgroup {
      try cgroup.freeze(until: Deadline(in: .seconds(5)))
    } else {
      _ = try ProcessTree.stopAll(
        root: process.identity, session: process.pid, until: Deadline(in: .seconds(5)))
    }
  }

  /// Anonymous memory in RAM, all processes together, in bytes.
  func anonymousMemory() throws -> UInt64 {
    try target.discover().pids.reduce(0) { total, pid in
      let text = try readText("/proc/\(pid)/status")
      let line = text.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
      let number = line?.split(separator: " ").dropLast().last?.split(separator: "\t").last
      return total + (number.flatMap { UInt64($0) } ?? 0) * 1024
    }
  }

  private static func pipe() throws -> (read: Descriptor, write: Descriptor) {
    var ends: [Int32] = [0, 0]
    _ = try systemCall("pipe") { Glibc.pipe(&ends) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
  }
}

/// The programs in Tests/Fixtures, compiled once a run.
enum Fixture {
  static let directory: String = {
    let file = #filePath
    return file.split(separator: "/").dropLast(2).reduce("") { $0 + "/" + $1 } + "/Fixtures"
  }()

  static func path(_ name: String) -> String { directory + "/" + name }

  /// A scratch directory of this test run.
  static let scratch: String = {
    var template = Array("/tmp/dormouse-tests-XXXXXX".utf8CString)
    let made = mkdtemp(&template) != nil
    precondition(made, "can't make a directory in /tmp")
    chmod(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self), 0o755)
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }()

  private static let compiled = Mutex<[String: String]>([:])

  /// The path of a C fixture's executable.
  static func compile(_ name: String) throws -> String {
    try compiled.withLock { known in
      if let path = known[name] { return path }
      let target = "\(scratch)/\(name)"
      let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
      let compiler = try spawn(
        SpawnRequest(
          path: try #require(resolveExecutable("cc", path: path)),
          arguments: [
            "cc", "-O1", "-g", "-pthread", "-o", target, Self.path("\(name).c"),
          ],
          environment: ["PATH": path], directory: "/tmp", input: 0, output: 2, error: 2))
      var status: Int32 = 0
      waitpid(compiler.pid, &status, 0)
      try #require(status == 0, "cc \(name).c failed")
      known[name] = target
      return target
    }
  }

  /// A fresh path for an image.
  static func imagePath() -> String { "\(scratch)/image-\(number.add(1, ordering: .relaxed).newValue)" }
  private static let number = Atomic(0)
}
