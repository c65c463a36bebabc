import Glibc
import Linux

extension SpawnedProcess {
  /// A process of a test, whose input and output are /dev/null. The test ends it.
  package static func forTest(
    _ command: [String] = ["/bin/sleep", "1000"], _ environment: [String: String] = [:]
  ) throws -> SpawnedProcess {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    return try spawn(
      SpawnRequest(
        path: command[0], arguments: command, environment: environment, directory: "/",
        input: null.raw, output: null.raw, error: null.raw))
  }

  /// Ends the process. It may have been reaped already.
  package func endForTest() {
    sendSignal(SIGKILL, to: pid)
    while waitpid(pid, nil, 0) < 0, errno == EINTR {}
  }
}
