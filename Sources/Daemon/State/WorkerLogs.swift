import Glibc
import Linux

/// The files of a worker's output, in the directory of logs.
enum WorkerLogs {
  /// Removes the files. It waits for the disk. A file that can't be removed stays, and the next
  /// worker of this name writes to it.
  ///
  /// - Returns: the first failure; nil if there was none.
  static func remove(of worker: String, from directory: String) -> SystemCallError? {
    var failure: SystemCallError?
    do throws(SystemCallError) {
      for file in try listDirectory(directory) where isLog(file, of: worker) {
        do throws(SystemCallError) { try removeFile("\(directory)/\(file)") } catch {
          if error.code != ENOENT { failure = failure ?? error }
        }
      }
    } catch { return error.code == ENOENT ? nil : error }
    return failure
  }

  /// Whether a file belongs to the worker: `web.log`, `web.times`, or a rotated log such as
  /// `web.log.1`. Another worker may be called `web.log.1`.
  static func isLog(_ file: String, of worker: String) -> Bool {
    if file == "\(worker).log" || file == "\(worker).times" { return true }
    let lead = "\(worker).log."
    guard file.hasPrefix(lead), file.count > lead.count else { return false }
    return file.dropFirst(lead.count).allSatisfy { ("0"..."9").contains($0) }
  }
}
