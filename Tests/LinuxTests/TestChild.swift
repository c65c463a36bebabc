import Glibc
import Linux
import TestSupport

/// A process of a test. The process and its whole session are killed when the test ends.
final class TestChild {
  let process: SpawnedProcess
  var pid: Int32 { process.pid }
  private let output: Descriptor

  /// Runs `command`, which is searched for in PATH. Its output can be read with `line()`.
  init(_ command: String..., cgroup: WorkerCgroup? = nil) throws {
    let (reader, writer) = try Descriptor.pipe()
    output = reader
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    guard let program = resolveExecutable(command[0], path: path) else {
      throw TestFailure("\(command[0]) isn't installed")
    }
    process = try spawn(
      SpawnRequest(
        path: program, arguments: command, environment: ["PATH": path], directory: "/",
        input: null.raw, output: writer.raw, error: writer.raw,
        cgroup: cgroup?.directory.raw))
  }

  /// Returns the next line of output; it fails after 60 s without one.
  func line() throws -> String {
    var bytes: [UInt8] = []
    let deadline = Deadline(in: .seconds(60))
    while try pollDescriptor(output.raw, for: POLLIN, until: deadline) {
      let chunk = try output.read(upTo: 1)
      if chunk.isEmpty || chunk == [UInt8(ascii: "\n")] {
        return String(decoding: bytes, as: UTF8.self)
      }
      bytes += chunk
    }
    throw TestFailure("no line within 60 s; so far \(String(decoding: bytes, as: UTF8.self))")
  }

  /// True if there is output that wasn't read yet.
  var hasWritten: Bool {
    get throws {
      try pollDescriptor(output.raw, for: POLLIN, until: Deadline(in: .zero))
    }
  }

  func waitForExit() throws {
    guard try pollDescriptor(process.pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(60)))
    else { throw TestFailure("process \(pid) still runs after 60 s") }
  }

  /// True if the process executes `sleep` and waits in it.
  var sleeps: Bool {
    get throws {
      let stat = try ProcessStat.read(pid)
      return stat.name == "sleep" && stat.state == .sleeping
    }
  }

  func tree() throws -> ProcessTree {
    try ProcessTree.discover(root: process.identity, session: pid)
  }

  /// Stops the process and those below it, some of which an earlier list may have.
  func stopTree(initial: ProcessTree? = nil) throws(ProcessTreeError) -> ProcessTree {
    try ProcessTree.stopAll(
      root: process.identity, session: pid, initial: initial, until: Deadline(in: .seconds(60)))
  }

  deinit {
    try? ProcessTree.killAll(root: process.identity, session: pid)
    kill(pid, SIGKILL)
    while waitpid(pid, nil, 0) < 0 && errno == EINTR {}
  }
}

/// The output of a shell's script that is started with these terms.
func output(
  of script: String, environment: [String: String] = [:], oomScore: OOMScore = .usual,
  _ terms: SpawnTerms? = nil
) throws -> String {
  let scratch = try Scratch()
  let path = "\(scratch.path)/output"
  let output = try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
  let null = try Descriptor.open("/dev/null", O_RDWR)
  var request = SpawnRequest(
    path: "/bin/sh", arguments: ["sh", "-c", script], environment: environment, directory: "/",
    input: null.raw, output: output.raw, error: null.raw)
  request.terms = terms
  request.oomScore = oomScore
  waitForChild(try spawn(request).pid)
  withExtendedLifetime(output) {}
  return try readText(path)
}

/// A parent for cgroups, if this machine has one.
enum TestCgroups {
  static let available = {
    guard let root = try? CgroupRoot.detect(name: "dormouse-test-probe-\(getpid())") else {
      return false
    }
    root.remove()
    return true
  }()

  /// Passes a new group to `body` and removes it afterwards.
  static func with<Result>(
    _ name: String, _ body: (WorkerCgroup) throws -> Result
  ) throws -> Result {
    let root = try CgroupRoot.detect(name: "dormouse-test-\(getpid())-\(name)")
    defer { root.remove() }
    let group = try WorkerCgroup.create(in: root, name: name)
    defer {
      try? group.kill()
      try? group.remove(until: Deadline(in: .seconds(60)))
    }
    return try body(group)
  }
}
