import Glibc

/// A temporary directory. Missing directories above it are made, and `end` removes them with it if
/// they are empty.
public final class BorrowedDirectory {
  public let path: String
  /// The directories that were made, outermost first.
  private var created: [String] = []

  /// Makes the directory at `path` if it doesn't exist.
  public init(_ path: String) throws(SystemCallError) {
    self.path = path
    do throws(SystemCallError) {
      try make(path)
    } catch {
      end()
      throw error
    }
  }

  /// Makes a new directory inside another one, with a random name that begins with `prefix`.
  public convenience init(newIn parent: String, prefix: String) throws(SystemCallError) {
    try self.init(parent)
    var template = Array("\(parent)/\(prefix)XXXXXX".utf8CString)
    // mkdtemp(3) returns its argument, or NULL.
    let result = kernelResult { mkdtemp(&template) == nil ? Int32(-1) : 0 }
    guard result == 0 else {
      end()
      throw SystemCallError("make a directory in", on: parent, code: -result)
    }
    inner = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The new directory in `path`; nil if none was requested.
  private var inner: String?
  /// The directory to use: the new one, or `path`.
  public var usable: String { inner ?? path }

  private func make(_ path: String) throws(SystemCallError) {
    if access(path, F_OK) == 0 || path.isEmpty { return }
    if let slash = path.lastIndex(of: "/") { try make(String(path[..<slash])) }
    try systemCall("mkdir", path: path) { mkdir($0, 0o700) }
    created.append(path)
  }

  /// Removes the files in the new directory, and the directories that were made and are empty.
  /// `deinit` calls it too.
  public func end() {
    if let inner {
      // A directory that can't be listed stays.
      for name in (try? listDirectory(inner)) ?? [] { unlink("\(inner)/\(name)") }
      rmdir(inner)
    }
    inner = nil
    for directory in created.reversed() { rmdir(directory) }
    created = []
  }

  deinit { end() }
}
