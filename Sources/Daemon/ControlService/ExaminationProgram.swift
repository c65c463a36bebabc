import Control
import Glibc
import Linux
import Supervision

/// Why a daemon's tests have no result.
enum ExaminationFailure: Error, Equatable, CustomStringConvertible {
  case notStarted(String)
  /// The tests didn't end in time.
  case overdue
  case unreadable(String)

  var description: String {
    switch self {
    case .notStarted(let reason): "the daemon can't start the process that examines it: \(reason)"
    case .overdue: "the examination didn't end in time; a later one may"
    case .unreadable(let reason): "the examination's report can't be read: \(reason)"
    }
  }
}

/// Tests what the machine allows the daemon, for `doctor`. That may differ from what it allows the
/// caller's shell. A process makes the tests, so that they neither disturb nor delay the daemon. It
/// is this program, as the daemon's user, in the daemon's cgroup and with its rights, and prints a
/// `DoctorReport` as JSON.
struct ExaminationProgram: Sendable {
  typealias Outcome = Result<DoctorReport, ExaminationFailure>

  let path: String
  let arguments: [String]
  let environment: [String: String]
  var timeout = Duration.seconds(30)

  /// The maximum length of a report in bytes. No report is as long.
  private static let maxLength = 512 << 10

  /// Runs the program and waits for it. It mustn't run on the event loop's thread.
  func run() -> Outcome {
    let deadline = Deadline(in: timeout)
    let output: Descriptor
    let process: SpawnedProcess
    do {
      let (ours, theirs) = try Descriptor.socketPair(.stream)
      output = ours
      let null = try Descriptor.open("/dev/null", O_RDWR)
      process = try spawn(
        SpawnRequest(
          path: path, arguments: arguments, environment: environment, directory: "/",
          input: null.raw, output: theirs.raw, error: null.raw))
    } catch { return .failure(.notStarted("\(error)")) }
    // This also ends the processes that it has started. It is reaped there, or with the orphans.
    defer { ProcessRemover.shared.remove(process) }
    do {
      guard let bytes = try Self.read(output, until: deadline) else { return .failure(.overdue) }
      return .success(try WireCodec.decode(DoctorReport.self, from: bytes))
    } catch { return .failure(.unreadable("\(error)")) }
  }

  /// Reads all output; nil if that took too long.
  private static func read(
    _ output: Descriptor, until deadline: Deadline
  ) throws(SystemCallError) -> [UInt8]? {
    var bytes: [UInt8] = []
    while try pollDescriptor(output.raw, for: POLLIN, until: deadline) {
      let chunk = try output.read(upTo: 65536)
      if chunk.isEmpty || bytes.count > maxLength { return bytes }
      bytes += chunk
    }
    return nil
  }
}

extension ExaminationProgram {
  /// The program for the daemon with this state directory and socket.
  init(stateDirectory: String, socket: String) {
    self.init(
      // The path /proc/self/exe works even if the file has been replaced since.
      path: "/proc/self/exe",
      arguments: [
        "dormouse", "doctor", "--shell", "--json", "--state-directory", stateDirectory,
        "--socket", socket,
      ], environment: ProcessEnvironment.current().variables)
  }
}
