import CLinux
import Glibc

/// The check whether this process may use a directory for files that determine its behaviour:
/// images, records, sockets.
///
/// A user with write permission for a directory can replace everything below it. So a process that
/// runs as root checks each directory of a path, one after the other from the root directory on,
/// through a descriptor of the one before. Each must belong to root, and no other user may write to
/// it. In a directory such as /tmp, which is sticky and belongs to root, other users can't replace
/// files of root. The same is checked for symbolic links on the way. A directory that passed the
/// check can't be replaced afterwards, because only root may change those directories.
///
/// A process of an ordinary user checks the last directory only: it does nothing that its user may
/// not do, and the paths and owners of home directories differ between machines.
public struct DirectoryTrust: Sendable {
  /// The user whose directories are trusted, in addition to root's.
  public let user: uid_t
  /// True if all directories of a path are checked, not only the last.
  public let isStrict: Bool
  /// The number that stands for users that don't exist in this user namespace (user_namespaces(7)).
  /// No process in the namespace can act as one of them, and in most such namespaces the
  /// directories of the outer root belong to one.
  private let outsider: uid_t?

  /// The rule for the last directory of a path.
  public enum Sharing: Sendable {
    /// No other user may create files in the directory.
    case exclusive
    /// Other users may create files in the directory, if they can't replace the files of this user.
    case shared
  }

  public init(user: uid_t, isStrict: Bool, outsider: uid_t? = nil) {
    self.user = user
    self.isStrict = isStrict
    self.outsider = outsider
  }

  /// The check for the user of this process; it is strict for root.
  public static let ofThisProcess = DirectoryTrust(
    user: geteuid(), isStrict: geteuid() == 0, outsider: unmappedUser())

  /// Opens the directory at an absolute path. It may wait for a file system.
  public func open(
    _ path: String, making mode: mode_t? = nil, as last: Sharing = .exclusive
  ) throws(DirectoryTrustError) -> DirectoryHandle {
    guard path.hasPrefix("/") else {
      throw .failed(SystemCallError("open", on: path, code: EINVAL))
    }
    let root = try calling { () throws(SystemCallError) in
      try Descriptor.open("/", Int32(CLINUX_O_PATH) | O_DIRECTORY)
    }
    var walk = Walk(root: root, current: root, remaining: Self.components(path))
    if isStrict { try check(root, at: "/", .shared) }
    while let name = walk.remaining.popLast() {
      try step(&walk, name, making: mode)
      if isStrict { try check(walk.current, at: walk.path, .shared) }
    }
    try check(walk.current, at: walk.path, last)
    return DirectoryHandle(
      path: path, descriptor: try calling { () throws(SystemCallError) in try walk.usable() })
  }

  /// Whether a file at that path is safe from other users, and its directory belongs to root or
  /// this user. All directories of the path are checked.
  public func isSafe(directoryOf path: String, as last: Sharing = .exclusive) -> Bool {
    guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/") else { return false }
    do throws(DirectoryTrustError) {
      _ = try DirectoryTrust(user: user, isStrict: true, outsider: outsider).open(
        slash == path.startIndex ? "/" : String(path[..<slash]), as: last)
      return true
    } catch { return false }
  }

  private struct Walk {
    let root: Descriptor
    var current: Descriptor
    /// The path of `current`, without links.
    var path = "/"
    /// The remaining components of the path, the next one last.
    var remaining: [String]
    var links = 0

    /// Opens the directory for listing it, or returns the O_PATH descriptor if the directory may
    /// not be read. The latter only permits opening files by name.
    func usable() throws(SystemCallError) -> Descriptor {
      let result = clinux_open_at(current.raw, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
      if result == -EACCES { return current }
      return Descriptor(owning: try shim("open", on: path) { result })
    }
  }

  private static let maxLinks = 40

  /// Returns the path's components in reverse.
  private static func components(_ path: String) -> [String] {
    path.split(separator: "/").filter { $0 != "." }.reversed().map(String.init)
  }

  private func step(
    _ walk: inout Walk, _ name: String, making mode: mode_t?
  ) throws(DirectoryTrustError) {
    let path = Self.path(of: name, in: walk.path)
    let parent = walk.current.raw
    let entry = try calling { () throws(SystemCallError) in
      let flags = Int32(CLINUX_O_PATH) | O_NOFOLLOW | O_CLOEXEC
      var result = clinux_open_at(parent, name, flags, 0)
      if result == -ENOENT, let mode {
        let made = kernelResult(name) { mkdirat(parent, $0, mode) }
        if made != -EEXIST { try shim("mkdir", on: path) { made } }
        result = clinux_open_at(parent, name, flags, 0)
      }
      return Descriptor(owning: try shim("open", on: path) { result })
    }
    let status = try status(of: entry, at: path)
    switch status.st_mode & S_IFMT {
    case S_IFDIR:
      walk.current = entry
      walk.path = path
    case S_IFLNK:
      walk.links += 1
      if walk.links > Self.maxLinks {
        throw .failed(SystemCallError("open", on: path, code: ELOOP))
      }
      // The owner of a link in a directory such as /tmp can replace it.
      if isStrict || walk.remaining.isEmpty, !trusts(status.st_uid) {
        throw .untrusted(path: path, .owner(status.st_uid, mode: status.st_mode))
      }
      let target = try calling { () throws(SystemCallError) in
        try readLink(entry, at: path)
      }
      if target.hasPrefix("/") {
        walk.current = walk.root
        walk.path = "/"
      }
      walk.remaining += Self.components(target)
    default:
      throw .failed(SystemCallError("open", on: path, code: ENOTDIR))
    }
  }

  private static func path(of name: String, in path: String) -> String {
    if name == ".." {
      guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
      return String(path[..<slash])
    }
    return path == "/" ? "/\(name)" : "\(path)/\(name)"
  }

  private func readLink(_ link: Descriptor, at path: String) throws(SystemCallError) -> String {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = try shim("readlink", on: path) {
      kernelResult("") { readlinkat(link.raw, $0, &buffer, buffer.count) }
    }
    return String(decoding: buffer.prefix(count), as: UTF8.self)
  }

  private func check(
    _ directory: Descriptor, at path: String, _ last: Sharing
  ) throws(DirectoryTrustError) {
    let status = try status(of: directory, at: path)
    guard trusts(status.st_uid) else {
      throw .untrusted(path: path, .owner(status.st_uid, mode: status.st_mode))
    }
    // In the shared directories of an ordinary user, the group is trusted.
    let others = isStrict || last == .exclusive ? S_IWOTH | S_IWGRP : S_IWOTH
    let isSafe = last == .shared && status.st_mode & S_ISVTX != 0
    if status.st_mode & others != 0, !isSafe {
      throw .untrusted(path: path, .writable(owner: status.st_uid, mode: status.st_mode))
    }
  }

  private func status(
    of descriptor: Descriptor, at path: String
  ) throws(DirectoryTrustError) -> stat {
    try calling { () throws(SystemCallError) in try descriptor.readStatus(path) }
  }

  private func trusts(_ owner: uid_t) -> Bool { owner == 0 || owner == user || owner == outsider }

  private func calling<Result>(
    _ body: () throws(SystemCallError) -> Result
  ) throws(DirectoryTrustError) -> Result {
    do throws(SystemCallError) { return try body() } catch { throw .failed(error) }
  }

  /// Returns the kernel's overflow number, or nil if a user of this namespace has it.
  private static func unmappedUser() -> uid_t? {
    let overflow: uid_t = 65534
    // Each line has the first number inside the namespace, the first number outside, and their
    // count.
    for line in (try? readFile("/proc/self/uid_map"))?.lines() ?? [] {
      let numbers: [UInt64] = line.words().compactMap { $0.number() }
      guard numbers.count == 3 else { return nil }
      if (numbers[0]..<(numbers[0] + numbers[2])).contains(UInt64(overflow)) { return nil }
    }
    return overflow
  }
}

/// The reason why a directory isn't used.
public enum DirectoryTrustError: Error, Hashable, Sendable, CustomStringConvertible {
  case failed(SystemCallError)
  /// Another user could replace files in it, or below it.
  case untrusted(path: String, Flaw)

  public enum Flaw: Hashable, Sendable, CustomStringConvertible {
    case owner(UInt32, mode: UInt32)
    case writable(owner: UInt32, mode: UInt32)

    public var description: String {
      switch self {
      case .owner(let owner, let mode):
        "user \(owner) owns it (mode \(Self.octal(mode))) and could replace files in it; "
          + "choose another directory, or `chown` it"
      case .writable(let owner, let mode):
        "other users may write to it (mode \(Self.octal(mode)), owner \(owner)); "
          + "`chmod go-w` it, or choose another"
      }
    }

    private static func octal(_ mode: UInt32) -> String {
      let digits = String(mode & 0o7777, radix: 8)
      return String(repeating: "0", count: 4 - digits.count) + digits
    }
  }

  public var description: String {
    switch self {
    case .failed(let error): "\(error)"
    case .untrusted(let path, let flaw): "the directory \(path) is not safe: \(flaw)"
    }
  }
}
