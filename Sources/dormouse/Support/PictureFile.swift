import Control
import Glibc
import Linux

/// The file that a verb writes: a picture, a configuration, a trace. It is written under another
/// name and renamed, so that a failure leaves an earlier file unchanged. If the path is a link, the
/// file behind it is replaced, and not the link. A device or a pipe, such as `/dev/stdout`, is
/// written itself.
final class PictureFile {
  /// What is written: a file that gets the path's name at the end, or what has this name already.
  private enum Target {
    case file(StateFile)
    case device(Descriptor)
    case standardOutput
  }

  private let path: String
  private let target: Target
  private var buffer: [UInt8] = []

  /// - Parameter isPrivate: whether only the user of this process may read the file. If not, a file
  ///   that is replaced keeps its mode and owner.
  init(_ path: String, isPrivate: Bool = false) throws(FileError) {
    self.path = path
    // Standard output may be a file with other output in it, or a socket, which can't be opened.
    if ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].contains(path) {
      target = .standardOutput
      return
    }
    target = try FileError.wrap("writing", on: path) { () throws(SystemCallError) -> Target in
      let mode: mode_t = isPrivate ? 0o600 : 0o644
      if isAbsent(path) { return .file(try StateFile(path, mode: mode)) }
      // The kernel may forbid this call to follow a link that another user has put into /tmp
      // (fs.protected_symlinks in proc_sys_fs(5)). It never forbids realpath(3) to read the link.
      let status = try readStatus(of: path)
      if !status.isRegularFile, !status.isDirectory {
        return .device(try Descriptor.open(path, O_WRONLY))
      }
      let resolved = try resolvedPath(path)
      guard linkStatus(of: resolved)?.isSameFile(as: status) == true else {
        throw SystemCallError("realpath", on: path, code: EBUSY)
      }
      let file = try StateFile(resolved, mode: mode)
      if !isPrivate { try file.keep(modeAndOwnerOf: status) }
      return .file(file)
    }
  }

  /// Writes the whole content.
  func write(_ text: String) throws(FileError) {
    buffer += text.utf8
    try flush()
    try FileError.wrap("writing", on: path) { () throws(SystemCallError) in
      if case .file(let file) = target { try file.commit(.none) }
    }
  }

  /// Adds a piece of a large content, whose last one `write` adds.
  func add(_ text: String) throws(FileError) {
    buffer += text.utf8
    if buffer.count > 1 << 20 { try flush() }
  }

  private func flush() throws(FileError) {
    if case .standardOutput = target { try Output.write(buffer) }
    try FileError.wrap("writing", on: path) { () throws(SystemCallError) in
      switch target {
      case .file(let file): try file.write(buffer)
      case .device(let device): try device.writeAll(buffer)
      case .standardOutput: break
      }
    }
    buffer.removeAll(keepingCapacity: true)
  }

  func discard() {
    if case .file(let file) = target { file.discard() }
  }
}
