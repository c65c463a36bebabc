import Control
import Glibc

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
    if rename(partial, path) != 0 {
      throw FileError(operation: "writing", path: path, errno: errno)
    }
  }

  func discard() { unlink(partial) }

  private func create(_ bytes: [UInt8]) throws(FileError) {
    let file = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard file >= 0 else { throw FileError(operation: "writing", path: path, errno: errno) }
    defer { close(file) }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      let failure = errno
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if failure != EINTR {
        throw FileError(operation: "writing", path: path, errno: failure)
      }
    }
  }
}
