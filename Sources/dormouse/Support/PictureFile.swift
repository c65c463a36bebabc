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
  }

  private let path: String
  private let target: Target
  private var buffer: [UInt8] = []

  init(_ path: String, mode: mode_t = 0o644) throws(FileError) {
    self.path = path
    target = try FileError.wrap("writing", on: path) { () throws(SystemCallError) -> Target in
      if let status = fileStatus(of: path), !status.isRegularFile, !status.isDirectory {
        return .device(try Descriptor.open(path, O_WRONLY))
      }
      return .file(try StateFile(isAbsent(path) ? path : try resolvedPath(path), mode: mode))
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
    try FileError.wrap("writing", on: path) { () throws(SystemCallError) in
      switch target {
      case .file(let file): try file.write(buffer)
      case .device(let device): try device.writeAll(buffer)
      }
    }
    buffer.removeAll(keepingCapacity: true)
  }

  func discard() {
    if case .file(let file) = target { file.discard() }
  }
}
