import Control
import FootprintTrace
import Glibc
import Linux

/// Whose footprint is recorded: a daemon's worker, a process, or a program that we have started.
protocol RecordingSource: AnyObject {
  var subject: RecordingHeader.Subject { get }
  var name: String { get }
  var command: [String] { get }
  var pid: Int32? { get }
  /// Of a worker, when the recording begins.
  var state: String? { get }
  /// Readable when there is news; to be looked at before each wait, too.
  var descriptor: Int32 { get }

  /// What has happened since the last time. `now`: seconds since the beginning.
  func news(at now: Double) throws(RecordingFailure) -> RecordingNews
  /// Nobody, where it doesn't run just now.
  func tree() throws(RecordingFailure) -> ProcessTree
  /// Asks it to give memory back; what to write down of that, unless it will be in the news.
  func warn(at now: Double) throws(RecordingFailure) -> FootprintMark?
  /// A signal to us. True: the recording is over.
  func handle(_ signal: SignalQueue.Arrival) -> Bool
  /// The recording is over before its subject is.
  func release()
}

struct RecordingNews {
  var marks: [FootprintMark] = []
  var end: RecordingEnd?
}

/// Why nothing is recorded, or nothing more.
public enum RecordingFailure: Error, CustomStringConvertible {
  /// The program can't be started.
  case start(SystemCallError)
  /// There is no such process.
  case noProcess(Int32)
  case measure(FootprintError)
  case write(SystemCallError)
  case system(SystemCallError)
  case control(ControlError)
  /// What the daemon says of a worker that it doesn't know, or tells nothing about.
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
