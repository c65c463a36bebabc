import Control
import Glibc
import Linux

/// Where a picture goes. Written beside its name and renamed, so that a failure leaves an earlier
/// one as it was.
struct PictureFile {
  private let path: String
  private var partial: String { "\(path).partial" }

  init(_ path: String) throws(FileError) {
    self.path = path
    try create([])
  }

  func write(_ text: String) throws(FileError) {
    try create(Array(text.utf8))
    do throws(SystemCallError) { try renameFile(partial, to: path) } catch {
      throw FileError(operation: "writing", path: path, code: error.code)
    }
  }

  func discard() { unlink(partial) }

  private func create(_ bytes: [UInt8]) throws(FileError) {
    let file = try check(
      "writing", path,
      kernelResult(partial) { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644) })
    defer { close(file) }
    try writeAll(bytes, to: file, path: path)
  }
}
