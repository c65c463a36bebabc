import Glibc
import Linux
import TestSupport

/// The exit code and the output of a command.
struct Outcome: CustomStringConvertible {
  /// nil: a signal ended it.
  var code: Int32?
  var output: String
  var error: String

  var description: String { "code \(code.map { "\($0)" } ?? "none"): \(output)\(error)" }
}

/// A process of a test.
struct Command {
  var arguments: [String]
  var environment = Self.usualEnvironment
  var directory = "/"

  /// The program under test with these arguments.
  static func dormouse(_ arguments: [String]) -> Command {
    Command(arguments: [TestMachine.executable] + arguments)
  }

  private static var usualEnvironment: [String: String] {
    // The last directory is where scripts/bootstrap puts what Debian has under other names.
    let path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:\(TestMachine.root)/.build/tools"
    var variables = ["PATH": path, "HOME": "/"]
    // Another limit for the check of the event loop (`TurnCheck`), for example under a sanitizer.
    variables["DORMOUSE_LOOP_CHECK"] = getenv("DORMOUSE_LOOP_CHECK").map { String(cString: $0) }
    // Debug builds on a busy machine need longer.
    variables["DORMOUSE_TEST_STANDSTILL"] = "30"
    return variables
  }

  /// Its output is written to files, so that no reader is needed while it runs.
  func start(output: String, error: String) throws -> SpawnedProcess {
    let flags = O_RDWR | O_CREAT | O_APPEND
    let null = try Descriptor.open("/dev/null")
    let out = try Descriptor.open(output, flags, mode: 0o644)
    let err = try Descriptor.open(error, flags, mode: 0o644)
    guard let first = arguments.first,
      let path = resolveExecutable(first, path: environment["PATH"] ?? "")
    else { throw TestFailure("\(arguments) isn't installed") }
    return try spawn(
      SpawnRequest(
        path: path, arguments: arguments, environment: environment, directory: directory,
        input: null.raw, output: out.raw, error: err.raw))
  }

  /// Runs it to its end.
  func run(in scratch: Scratch, limit: Duration = .seconds(120)) throws -> Outcome {
    let output = scratch.uniquePath("out")
    let error = scratch.uniquePath("err")
    let process = try start(output: output, error: error)
    let code = try process.wait(limit)
    return Outcome(code: code, output: try readText(output), error: try readText(error))
  }
}

extension SpawnedProcess {
  /// Its exit code; nil where a signal ended it. Ends it when it takes too long.
  @discardableResult
  func wait(_ limit: Duration) throws -> Int32? {
    let ended = try pollDescriptor(pidfd.raw, for: POLLIN, until: Deadline(in: limit))
    if !ended { kill(pid, SIGKILL) }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    if !ended { throw TestFailure("a command was still running after \(limit)") }
    return status & 0x7f == 0 ? status >> 8 & 0xff : nil
  }
}
