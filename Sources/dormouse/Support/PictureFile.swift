import Control
import Glibc
import Linux

/// The file that a verb writes: a picture, a configuration, a trace. It is written under another
/// name and renamed, so that a failure leaves an earlier file unchanged.
final class PictureFile {
  private let path: String
  private let file: StateFile
  private var buffer: [UInt8] = []

  init(_ path: String, mode: mode_t = 0o644) throws(FileError) {
    self.path = path
    file = try FileError.wrap("writing", on: path) { () throws(SystemCallError) in
      try StateFile(path, mode: mode)
    }
  }

  /// Writes the whole content.
  func write(_ text: String) throws(FileError) {
    buffer += text.utf8
    try flush()
    try FileError.wrap("writing", on: path) { () throws(SystemCallError) in
      try file.commit(.none)
    }
  }

  /// Adds a piece of a large content, whose last one `write` adds.
  func add(_ text: String) throws(FileError) {
    buffer += text.utf8
    if buffer.count > 1 << 20 { try flush() }
  }

  private func flush() throws(FileError) {
    try FileError.wrap("writing", on: path) { () throws(SystemCallError) in
      try file.write(buffer)
    }
    buffer.removeAll(keepingCapacity: true)
  }

  func discard() { file.discard() }
}
