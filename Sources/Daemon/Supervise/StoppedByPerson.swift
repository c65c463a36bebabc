import Lifecycle
import Linux

/// `restart.when: unless-stopped`: the workers that the operator has stopped, for the daemon's next start. A
/// file of names, a line each. Belongs to the loop's thread.
final class StoppedByPerson {
  private let path: String
  private let files: any StateFileWriter
  private var names: Set<String>

  /// Reads the file, and so may wait for the disk.
  init(path: String, files: any StateFileWriter) {
    self.path = path
    self.files = files
    // Without the file no worker was stopped. If the file is missing or can't be read, all workers start.
    names = Set(((try? readText(path)) ?? "").split(separator: "\n").map(String.init))
  }

  func contains(_ id: WorkerID) -> Bool { names.contains(id.name) }

  /// - Parameter warn: called later if the file can't be written.
  func set(_ id: WorkerID, _ isStopped: Bool, warn: @escaping (String) -> Void) {
    guard contains(id) != isStopped else { return }
    if isStopped { names.insert(id.name) } else { names.remove(id.name) }
    let text = names.sorted().map { $0 + "\n" }.joined()
    files.replace(path, with: text) { failure in
      if let failure { warn("\(id): can't record that it was stopped: \(failure)") }
    }
  }
}
