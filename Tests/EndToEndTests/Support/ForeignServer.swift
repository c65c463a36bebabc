import Glibc
import Linux
import TestSupport

/// A python server that the test supervises itself, and not the daemon.
final class ForeignServer {
  let process: SpawnedProcess
  let port: UInt16

  /// Returns when the server listens.
  init(_ scratch: Scratch, _ fixture: String, port: UInt16, arguments: [String]) throws {
    self.port = port
    process = try Command(
      arguments: [TestMachine.python, TestMachine.fixture(fixture)] + arguments
    ).start(output: scratch.uniquePath("out"), error: scratch.uniquePath("err"))
    guard try eventually({ (try? HTTPConnection(port: port)) != nil }) else {
      throw TestFailure("\(fixture) doesn't listen")
    }
  }

  deinit {
    kill(process.pid, SIGKILL)
    _ = try? process.wait(.seconds(60))  // The test may have waited for its end.
  }
}
