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

  /// Waits until the worker's record on disk has the state that the daemon reports.
  func waitForRecord(of name: String) throws {
    let path = "\(state)/workers/\(name).worker"
    let isSaved = try eventually {
      // It isn't there before the first write.
      let record = (try? readText(path)) ?? ""
      return record.contains("\nstate=\(try worker(name).state)\n")
    }
    guard isSaved else { throw TestFailure("the record of \(name) isn't up to date: \(words)") }
  }

  /// Waits until the process of each worker is in its record, and the sleep of each that sleeps.
  func waitForProcessesInRecords() throws {
    // A daemon that has ended has written what it will.
    let workers = (try? ask(.ps))?.workers ?? []
    for worker in workers {
      guard let pid = worker.pid else { continue }
      let sleeps = ["suspended", "hibernated"].contains(worker.state)
      let isSaved = try eventually {
        let fields = record(worker.name)
        guard fields["pid"] == "\(pid)" else { return false }
        return !sleeps || fields["state"] == worker.state
      }
      guard isSaved else { throw TestFailure("no record has \(worker.name): \(words)") }
    }
  }
}
