import Glibc
import Synchronization

/// A directory of a test's own, removed with everything in it. Its path is short enough for a
/// socket.
public final class Scratch: Sendable {
  public let path: String
  private let counter = Atomic(0)

  /// With these files in it, by name; a name may have directories.
  public init(_ files: [String: String] = [:]) throws {
    path = try Self.make()
    for (name, text) in files { try write(name, text) }
  }

  deinit { Self.remove(path) }

  public func uniquePath(_ suffix: String) -> String {
    "\(path)/\(counter.add(1, ordering: .relaxed).newValue).\(suffix)"
  }

  /// Replaces the file; its path.
  @discardableResult
  public func write(_ name: String, _ text: String) throws -> String {
    let file = "\(path)/\(name)"
    var directory = path
    for component in name.split(separator: "/").dropLast() {
      directory += "/\(component)"
      mkdir(directory, 0o755)
    }
    let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw TestFailure("\(file): errno \(errno)") }
    defer { close(descriptor) }
    var remainder = Array(text.utf8)[...]
    while !remainder.isEmpty {
      let count = remainder.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else { throw TestFailure("\(file): errno \(errno)") }
      remainder = remainder.dropFirst(count)
    }
    return file
  }

  /// Makes a directory behind links that the kernel takes milliseconds to follow, so that a child
  /// can be stopped meanwhile.
  public func slowDirectory() throws -> String {
    for name in ["a", "t"] { mkdir("\(path)/\(name)", 0o755) }
    var last = "t"
    for number in 0..<38 {
      let target = String(repeating: "a/../", count: 780) + last
      last = "l\(number)"
      guard symlink(target, "\(path)/\(last)") == 0 else { throw TestFailure("errno \(errno)") }
    }
    return "\(path)/\(last)"
  }

  /// For a directory that outlives every object: the caller removes it.
  public static func make() throws -> String {
    var template = Array("/tmp/dormouse-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw TestFailure("mkdtemp: errno \(errno)") }
    return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// Follows no symbolic links.
  public static func remove(_ path: String) {
    if unlink(path) == 0 { return }
    chmod(path, 0o700)
    for name in SourceTree.entries(path) { remove("\(path)/\(name)") }
    rmdir(path)
  }
}
