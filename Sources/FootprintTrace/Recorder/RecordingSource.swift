import Control
import Linux

/// The subject of a recording: a worker of a daemon, a process, or a program that was started for
/// the recording.
protocol RecordingSource: AnyObject {
  var subject: RecordingHeader.Subject { get }
  var name: String { get }
  var command: [String] { get }
  var pid: Int32? { get }
  /// The state of a worker when the recording begins.
  var state: String? { get }
  /// A descriptor that is readable when there are updates. Call `updates` before each wait, too,
  /// because some may have been read already.
  var descriptor: Int32 { get }

  /// Returns what has happened since the last call.
  ///
  /// - Parameter now: seconds since the recording began.
  func updates(at now: Double) throws(RecordingFailure) -> RecordingUpdates
  /// Returns the subject's processes. The tree is empty if the subject doesn't run now.
  func tree() throws(RecordingFailure) -> ProcessTree
  /// Asks the subject to free memory. Returns the mark of that, unless an update will have one.
  func warn(at now: Double) throws(RecordingFailure) -> FootprintMark?
  /// Handles a signal to this process. Returns true if the recording ends.
  func handle(_ signal: SignalQueue.Arrival) -> Bool
  /// Called when the recording ends before its subject.
  func release()
}

struct RecordingUpdates {
  var marks: [FootprintMark] = []
  var end: RecordingEnd?
}

/// The reason why a recording can't start or continue.
public enum RecordingFailure: Error, CustomStringConvertible {
  /// The program can't be started.
  case start(SystemCallError)
  /// There is no such process.
  case noProcess(Int32)
  case measure(FootprintError)
  case write(SystemCallError)
  case system(SystemCallError)
  case control(ControlError)
  /// The daemon's answer about a worker that it doesn't know or can't report on.
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
