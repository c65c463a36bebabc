import Control
import FootprintTrace
import Glibc
import Linux

/// The subject of a recording: a daemon's worker, a process, or a program that was started for the recording.
protocol RecordingSource: AnyObject {
  var subject: RecordingHeader.Subject { get }
  var name: String { get }
  var command: [String] { get }
  var pid: Int32? { get }
  /// The state of a worker when the recording begins.
  var state: String? { get }
  /// Readable when there is news. Call `news` before each wait, too.
  var descriptor: Int32 { get }

  /// What has happened since the last call. `now`: seconds since the beginning.
  func news(at now: Double) throws(RecordingFailure) -> RecordingNews
  /// The subject's processes; none if it doesn't run now.
  func tree() throws(RecordingFailure) -> ProcessTree
  /// Asks the subject to free memory. Returns the mark to record, unless the news will have it.
  func warn(at now: Double) throws(RecordingFailure) -> FootprintMark?
  /// Handles a signal to this process. Returns true if the recording ends.
  func handle(_ signal: SignalQueue.Arrival) -> Bool
  /// Called when the recording ends before its subject.
  func release()
}

struct RecordingNews {
  var marks: [FootprintMark] = []
  var end: RecordingEnd?
}

/// Why a recording can't start or continue.
public enum RecordingFailure: Error, CustomStringConvertible {
  /// The program can't be started.
  case start(SystemCallError)
  /// There is no such process.
  case noProcess(Int32)
  case measure(FootprintError)
  case write(SystemCallError)
  case system(SystemCallError)
  case control(ControlError)
  /// The daemon's answer about a worker that it doesn't know, or gives no information about.
  case unknownWorker(String)

  public var description: String {
    switch self {
    case .start(let error): "can't start \(escaped(error.subject)): \(error.reason)"
    case .noProcess(let pid): "there is no process \(pid)"
    case .measure(let error): error.description
    case .write(let error): "can't write \(escaped(error.subject)): \(error.reason)"
    case .system(let error): error.description
    case .control(let error): error.description
    case .unknownWorker(let text): text
    }
  }
}

func recording<Result: ~Copyable>(
  _ body: () throws(SystemCallError) -> Result
) throws(RecordingFailure) -> Result {
  do throws(SystemCallError) { return try body() } catch { throw .system(error) }
}

func asking<Result: ~Copyable>(
  _ body: () throws(ControlError) -> Result
) throws(RecordingFailure) -> Result {
  do throws(ControlError) { return try body() } catch { throw .control(error) }
}
