import Lifecycle
import Linux

/// The workers with `restart.when: unless-stopped` that the operator has stopped, for the daemon's
/// next start. They are saved in a file, a name on each line. It belongs to the event loop's
/// thread.
final class StoppedByOperator {
  private let path: String
  private let files: any StateFileWriter
  private var names: Set<String>

  /// Reads the file, so it may wait for the disk.
  init(path: String, files: any StateFileWriter) {
    self.path = path
    self.files = files
    // If the file is missing or can't be read, no worker counts as stopped and all workers start.
    names = Set(((try? readText(path)) ?? "").split(separator: "\n").map(String.init))
  }

  func contains(_ id: WorkerID) -> Bool { names.contains(id.name) }

  /// Records whether the operator has stopped a worker.
  ///
  /// - Parameter warn: called later, if the file can't be written.
  func set(_ id: WorkerID, _ isStopped: Bool, warn: @escaping (String) -> Void) {
    guard contains(id) != isStopped else { return }
    if isStopped { names.insert(id.name) } else { names.remove(id.name) }
    let text = names.sorted().map { $0 + "\n" }.joined()
    files.replace(path, with: text) { failure in
      if let failure { warn("\(id): can't record that it was stopped: \(failure)") }
    }
  }
}
