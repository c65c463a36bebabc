import Linux
import Supervision
import Synchronization
import TestSupport

@testable import Daemon
@testable import Hibernation

/// A disk that responds when a test says so.
final class FakeStateFiles: StateFileWriter {
  private(set) var texts: [String: String] = [:]
  private var waiting: [(String?) -> Void] = []

  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void) {
    texts[path] = text
    waiting.append(then)
  }

  /// Reports that all files are on the disk, or that none could be written for this reason.
  func answer(_ failure: String? = nil) {
    let all = waiting
    waiting = []
    for then in all { then(failure) }
  }
}

/// A disk that has what was saved when a test says so.
final class FakeRecords: WorkerRecords {
  var isSaved = true
  private var waiting: [() -> Void] = []

  let all: [WorkerRecord] = []
  func loadAll() -> (records: [WorkerRecord], failures: [WorkerRecordError]) { ([], []) }
  func contains(_ name: String) -> Bool { false }
  func contains(sanitised name: String) -> Bool { false }
  func save(_ record: WorkerRecord, onFailure: @escaping @Sendable (WorkerRecordError) -> Void) {}
  func remove(_ name: String) {}
  func afterSaves(_ body: @escaping @Sendable () -> Void) { whenSaved(body) }
  func whenSaved(_ body: @escaping () -> Void) { waiting.append(body) }

  func save() {
    isSaved = true
    let bodies = waiting
    waiting = []
    for body in bodies { body() }
  }
}

/// The log lines of a component. They may be added on any thread.
final class LoggedLines: Sendable {
  private let lines = Mutex<[String]>([])

  var all: [String] { lines.withLock { $0 } }

  var log: @Sendable (DaemonLog.Priority, String) -> Void {
    { [self] priority, text in lines.withLock { $0.append("\(priority): \(text)") } }
  }
}

/// A log in a file of the test, and its lines.
struct TestLog {
  let log: DaemonLog
  private let path: String

  init(in scratch: Scratch) {
    path = scratch.path + "/log"
    log = DaemonLog(ofWrapper: path)
  }

  /// What was logged so far, with times.
  var text: String {
    log.drain(within: .seconds(60))
    // The file doesn't exist if nothing was logged.
    return (try? readText(path)) ?? ""
  }

  /// The lines that were logged so far, without their times.
  var lines: [String] {
    text.split(separator: "\n").map { String($0.drop { $0 != " " }.dropFirst()) }
  }

  /// The lines about a worker, without its name.
  func lines(about name: String) -> [String] {
    text.split(separator: "\n").compactMap { line in
      line.firstRange(of: "\(name): ").map { String(line[$0.upperBound...]) }
    }
  }
}

extension Scratch {
  /// Writes an image without pages that names these processes.
  @discardableResult
  func writeImage(_ name: String, of processes: [ProcessIdentity]) throws -> String {
    let image = "\(path)/\(name)"
    _ = try ImageWriter(path: image).commit(
      processes: processes.map {
        ImageProcess(pid: $0.pid, startTime: $0.startTime, scratchAddress: 0, threads: [])
      }, durability: .cached)
    return image
  }
}
