import Glibc

/// Reads and writes whole files, without Foundation: it would cost more memory than all other code
/// of this program.
enum File {
  /// Returns the bytes of a file; `nil` if it can't be read.
  static func read(_ path: String) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, (0...(64 << 20)).contains(status.st_size) else { return nil }
    let size = Int(status.st_size)
    var isWhole = true
    let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      while count < size {
        let transferred = Glibc.read(file, buffer.baseAddress.map { $0 + count }, size - count)
        if transferred < 0, errno == EINTR { continue }
        guard transferred > 0 else { break }
        count += transferred
      }
      isWhole = count == size
    }
    return isWhole ? bytes : nil
  }

  /// Returns whether the bytes were written.
  static func write(_ bytes: [UInt8], to path: String) -> Bool {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { return false }
    let isWritten = writeAll(bytes, to: file)
    return close(file) == 0 && isWritten
  }

  /// Returns whether all bytes were written.
  @discardableResult static func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
    var done = 0
    while done < bytes.count {
      let transferred = bytes.withUnsafeBytes {
        Glibc.write(file, $0.baseAddress.map { $0 + done }, bytes.count - done)
      }
      if transferred < 0, errno == EINTR { continue }
      guard transferred > 0 else { return false }
      done += transferred
    }
    return true
  }

  /// Creates the directory and its parents, for this user only. Returns whether it exists.
  static func makeDirectory(_ path: String) -> Bool {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return true }
    guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
      return false
    }
    return makeDirectory(String(path[..<slash])) && (mkdir(path, 0o700) == 0 || errno == EEXIST)
  }
}
