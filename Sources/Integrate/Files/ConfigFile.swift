import Glibc
import Linux

/// A configuration file on disk.
struct ConfigFile {
  /// The path after all links were followed. A link to the file stays a link.
  let target: String
  let bytes: [UInt8]
  private let status: stat

  private static let maxSize = 64 << 20
  private static let partialSuffix = ".dormouse-partial"

  /// Reads the file. The result is nil if there is no such file.
  init?(_ path: String) throws(FileProblem) {
    if isAbsent(path) { return nil }
    do throws(SystemCallError) {
      target = try resolvedPath(path)
      status = try readStatus(of: target)
    } catch {
      // The path is a link to nothing, or has a file as a directory.
      if error.code == ENOENT || error.code == ENOTDIR { return nil }
      throw .unreadable(error)
    }
    if !status.isRegularFile { throw .notRegular }
    if status.st_size > Self.maxSize { throw .tooLarge }
    do throws(SystemCallError) { bytes = try readFile(target) } catch { throw .unreadable(error) }
  }

  /// The reason why this process mustn't replace the file; nil if it may.
  var obstacle: FileProblem? {
    if status.st_uid != geteuid() { return .owner(status.st_uid) }
    if status.st_mode & S_IWUSR == 0 { return .readOnly }
    return status.st_nlink > 1 ? .hardLinks(Int(status.st_nlink)) : nil
  }

  /// Replaces the file at once: after a crash it has the old bytes or the new ones.
  func replace(with new: [UInt8]) throws(FileProblem) {
    if let obstacle { throw obstacle }
    let isUnchanged: Bool
    do throws(SystemCallError) {
      let file = try StateFile(target, partialSuffix: Self.partialSuffix)
      try file.keep(modeAndOwnerOf: status)
      try file.write(new)
      // Most hosts write to their file while they run.
      let current = try readFile(target)
      let currentStatus = try readStatus(of: target)
      isUnchanged = current == bytes && currentStatus.isSameFile(as: status)
      if isUnchanged { try file.commit(.dataAndDirectory) }
    } catch { throw .failed(error) }
    if !isUnchanged { throw .changedMeanwhile }
  }
}
