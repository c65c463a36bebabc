import Checksum
import Linux
import Policy

/// The processes that the operator has released from a rule. They aren't adopted again until they
/// end or their rule is changed. Later daemons read them from a file of lines. It belongs to the
/// event loop's thread.
final class ReleasedProcesses {
  private struct Entry: Hashable {
    var process: ProcessIdentity
    var rule: String
    /// A checksum of what the rule chooses.
    var choice: String
  }

  private let path: String
  private let bootID: String
  private let files: any StateFileWriter
  private var entries: [Entry]

  /// Reads the file, so it may wait for the disk.
  init(path: String, bootID: String, files: any StateFileWriter) {
    self.path = path
    self.bootID = bootID
    self.files = files
    // If the file can't be read, no process counts as released.
    let lines = ((try? readText(path)) ?? "").split(separator: "\n")
    // Pids and start times repeat after a boot.
    entries = lines.dropFirst().compactMap(Self.entry)
    if lines.first.map(String.init) != bootID { entries = [] }
  }

  var processes: Set<ProcessIdentity> { Set(entries.map(\.process)) }

  /// Adds a process that was released.
  ///
  /// - Parameter warn: called later, if the file can't be written.
  func add(_ process: ProcessIdentity, from rule: AdoptionRule, warn: @escaping (String) -> Void) {
    // Processes that have ended aren't needed any more.
    entries.removeAll { $0.process == process || $0.process.hasEnded }
    entries.append(
      Entry(process: process, rule: rule.name, choice: Self.mark(rule)))
    save(warn)
  }

  /// Removes the processes of rules that were removed or have changed. They may be adopted again.
  func keepOnly(_ rules: [AdoptionRule], warn: @escaping (String) -> Void) {
    let marks = Dictionary(rules.map { ($0.name, Self.mark($0)) }) { first, _ in first }
    let kept = entries.filter { marks[$0.rule] == $0.choice }
    guard kept.count != entries.count else { return }
    entries = kept
    save(warn)
  }

  private func save(_ warn: @escaping (String) -> Void) {
    let lines = entries.map { entry in
      "\(entry.process.pid) \(entry.process.startTime) \(entry.choice) \(entry.rule)"
    }
    let text = ([bootID] + lines).map { $0 + "\n" }.joined()
    files.replace(path, with: text) { failure in
      if let failure { warn("can't record which processes were released: \(failure)") }
    }
  }

  private static func entry(_ line: Substring) -> Entry? {
    let fields = line.split(separator: " ")
    guard fields.count == 4, let pid = Int32(fields[0]), let start = UInt64(fields[1]) else {
      return nil
    }
    return Entry(
      process: ProcessIdentity(pid: pid, startTime: start), rule: String(fields[3]),
      choice: String(fields[2]))
  }

  private static func mark(_ rule: AdoptionRule) -> String {
    CRC32.ieee.text(of: Array(rule.choice.utf8))
  }
}
