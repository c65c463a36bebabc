import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The programs in Tests/Fixtures, compiled once in each run.
enum Fixture {
  static let directory = SourceTree.root + "/Tests/Fixtures"

  static func path(_ name: String) -> String { directory + "/" + name }

  /// A scratch directory of this test run, which is removed when the run ends.
  static let scratch: String = {
    guard let path = try? Scratch.make() else { fatalError("can't make a directory in /tmp") }
    chmod(path, 0o755)
    atexit { Fixture.removeScratch() }
    return path
  }()

  private static func removeScratch() {
    BootKey.discard(in: scratch)
    if let root = Victim.cgroupRoot { rmdir(root.path) }
    Scratch.remove(scratch)
  }

  private static let compiled = Mutex<[String: String]>([:])

  /// Returns the path of a C fixture's executable, or of a library for LD_PRELOAD.
  static func compile(_ name: String, shared: Bool = false) throws -> String {
    try compiled.withLock { executables in
      if let path = executables[name] { return path }
      let target = "\(scratch)/\(name)"
      let status = try run(
        [
          "cc", "-O1", "-g", "-pthread", "-DPAGE_BYTES=\(pageSize)", "-o", target,
          Self.path("\(name).c"),
        ] + (shared ? ["-shared", "-fPIC"] : []))
      try #require(status == 0, "cc \(name).c failed")
      executables[name] = target
      return target
    }
  }

  /// Makes a copy of an executable that every user can reach. Another process writes the copy: a
  /// child that another test starts meanwhile would inherit this process's descriptor, and until
  /// its exec(2) the copy couldn't be started (ETXTBSY).
  static func copy(_ program: String) throws -> String {
    let target = imagePath()
    try #require(try run(["install", "-m", "755", program, target]) == 0)
    return target
  }

  /// Runs a command and returns its status.
  static func run(
    _ command: [String], environment: [String: String] = ["PATH": Program.path], output: Int32 = 2
  ) throws -> Int32 {
    let process = try spawn(
      SpawnRequest(
        path: try #require(Program.find(command[0])), arguments: command,
        environment: environment, directory: "/tmp", input: 0, output: output, error: output))
    var status: Int32 = 0
    waitpid(process.pid, &status, 0)
    return status
  }

  /// Returns a fresh path for an image.
  static func imagePath() -> String {
    "\(scratch)/image-\(number.add(1, ordering: .relaxed).newValue)"
  }
  private static let number = Atomic(0)
}
