import Glibc

extension Diagnostic: Error {
  /// The error of a file that can't be read as text.
  fileprivate init(_ path: String, _ what: String, code: Int32? = nil) {
    let reason = code.map { ": " + String(cString: strerror($0)) } ?? ""
    self.init(severity: .error, file: path, position: nil, message: "the file \(what)\(reason)")
  }
}

/// Reads files as texts, without Foundation.
enum FileContents {
  static func read(_ path: String, isRegularOnly: Bool = false) -> Result<String, Diagnostic> {
    bytes(path, isRegularOnly).flatMap { bytes in
      guard let text = String(validating: bytes, as: UTF8.self) else {
        let line = firstInvalidLine(bytes)
        return .failure(
          .init(path, "isn't UTF-8 text; the first byte that is wrong is in line \(line)"))
      }
      return .success(text)
    }
  }

  private static func bytes(
    _ path: String, _ isRegularOnly: Bool
  ) -> Result<[UInt8], Diagnostic> {
    // Without O_NONBLOCK, a FIFO with the name of a policy would block the daemon forever.
    let (descriptor, code) = path.withCString { text in
      let descriptor = open(text, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
      return (descriptor, errno)
    }
    guard descriptor >= 0 else { return .failure(.init(path, "can't be opened", code: code)) }
    defer { close(descriptor) }
    if isRegularOnly {
      var status = stat()
      guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
        return .failure(.init(path, "isn't a regular file"))
      }
    }
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      let code = errno
      if count < 0, code == EINTR { continue }
      guard count >= 0 else { return .failure(.init(path, "can't be read", code: code)) }
      if count == 0 { return .success(all) }
      all += buffer[..<count]
      if all.count > Document.sizeLimit {
        return .failure(.init(path, "is larger than 1MB, too large for a configuration"))
      }
    }
  }

  private static func firstInvalidLine(_ bytes: [UInt8]) -> Int {
    var line = 1
    for lineBytes in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      if String(validating: lineBytes, as: UTF8.self) == nil { return line }
      line += 1
    }
    return line
  }

  /// The status of the file, or of what a link names. nil: there is none, or it can't be examined.
  private static func status(of path: String) -> stat? {
    var status = stat()
    return stat(path, &status) == 0 ? status : nil
  }

  static func isDirectory(_ path: String) -> Bool {
    status(of: path).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
  }

  /// Returns the names in a directory, sorted, or the reason why it can't be read.
  static func listing(of directory: String) -> Result<[String], Diagnostic> {
    let (stream, code) = directory.withCString { text in
      let stream = opendir(text)
      return (stream, errno)
    }
    guard let stream else { return .failure(.init(directory, "can't be listed", code: code)) }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      // Only errno distinguishes the end of the directory from an error.
      errno = 0
      guard let entry = readdir(stream) else { break }
      let name = withUnsafeBytes(of: entry.pointee.d_name) { raw in
        String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
      }
      names.append(name)
    }
    let end = errno
    guard end == 0 else { return .failure(.init(directory, "can't be listed", code: end)) }
    return .success(names.sorted())
  }

  static func exists(_ path: String) -> Bool { status(of: path) != nil }

  /// Returns true if there is no file of that name. A link to nothing is there, and so is a file
  /// that can't be examined, for example because its file system doesn't answer: to read it is an
  /// error.
  static func isMissing(_ path: String) -> Bool {
    var status = stat()
    let code = path.withCString { text in lstat(text, &status) == 0 ? 0 : errno }
    return code == ENOENT || code == ENOTDIR
  }

  /// Returns the names in a directory, sorted. There are none if it can't be read.
  static func names(in directory: String) -> [String] {
    if case .success(let names) = listing(of: directory) { names } else { [] }
  }
}
