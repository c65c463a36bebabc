import Linux
import TestSupport

/// The workers' records on disk, which the daemon writes on another thread.
extension TestDaemon {
  /// The fields of a worker's record.
  func record(_ worker: String) -> [String: String] {
    let text = (try? readText("\(state)/workers/\(worker).worker")) ?? ""
    let pairs = text.split(separator: "\n").compactMap { line -> (String, String)? in
      guard let equals = line.firstIndex(of: "=") else { return nil }
      return (String(line[..<equals]), String(line[equals...].dropFirst()))
    }
    return Dictionary(pairs) { first, _ in first }
  }

  /// A field of the worker's record, once the record has been written.
  func recorded(_ field: String, of worker: String) throws -> String {
    var value: String?
    let isThere = try eventually {
      value = record(worker)[field]
      return value != nil
    }
    guard isThere, let value else {
      throw TestFailure("the record of \(worker) has no \(field): \(record(worker)); \(logText)")
    }
    return value
  }

  /// Waits until the worker's record on disk has the state that the daemon reports.
  func waitForRecord(of name: String) throws {
    let path = "\(state)/workers/\(name).worker"
    let isSaved = try eventually {
      // It isn't there before the first write.
      let record = (try? readText(path)) ?? ""
      return record.contains("\nstate=\(try worker(name).state)\n")
    }
    guard isSaved else { throw TestFailure("the record of \(name) isn't up to date: \(logText)") }
  }

  /// Waits until the process of each worker is in its record, and its state where that stays.
  /// Wrapped processes have no record.
  func waitForProcessesInRecords() throws {
    // A daemon that has ended has written what it will.
    if try hasEnded() { return }
    let declared = try readText(configuration)
    for worker in try ask(.ps).workers ?? [] {
      guard worker.isAdopted == true || declared.contains(worker.name) else { continue }
      guard try eventually({ try isRecorded(worker.name) }) else {
        throw TestFailure("no record has \(worker.name): \(logText)")
      }
    }
  }

  /// Its state may change meanwhile.
  private func isRecorded(_ name: String) throws -> Bool {
    // It may have been removed, or the daemon may have ended.
    guard let report = try? worker(name), let pid = report.pid else { return true }
    let fields = record(name)
    let stays = ["foreground", "background", "suspended", "hibernated"].contains(report.state)
    return fields["pid"] == "\(pid)" && (!stays || fields["state"] == report.state)
  }
}
