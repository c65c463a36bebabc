import CLinux
import Glibc

/// An open directory. Its operations happen in this directory, even if its path names another one
/// by then. No symbolic link is followed: names are single components, and any other name throws
/// EINVAL.
public final class DirectoryHandle: Sendable {
  /// The path by which the directory was opened, for messages.
  public let path: String
  public let descriptor: Descriptor

  init(path: String, descriptor: Descriptor) {
    self.path = path
    self.descriptor = descriptor
  }

  /// Opens a file of this directory; `O_CLOEXEC` and `O_NOFOLLOW` are added.
  public func open(
    _ name: String, _ flags: Int32, mode: mode_t = 0
  ) throws(SystemCallError) -> Descriptor {
    try check(name)
    let all = flags | O_CLOEXEC | O_NOFOLLOW
    return Descriptor(
      owning: try shim("open", on: "\(path)/\(name)") {
        clinux_open_at(descriptor.raw, name, all, mode)
      })
  }

  /// Opens a directory in this one.
  public func openDirectory(_ name: String) throws(SystemCallError) -> DirectoryHandle {
    DirectoryHandle(
      path: path.hasSuffix("/") ? path + name : "\(path)/\(name)",
      descriptor: try open(name, O_RDONLY | O_DIRECTORY))
  }

  /// Makes a directory in this one; the umask applies.
  ///
  /// - Returns: false if there is a file of that name already.
  @discardableResult
  public func makeDirectory(_ name: String, mode: mode_t) throws(SystemCallError) -> Bool {
    try check(name)
    let result = kernelResult(name) { mkdirat(descriptor.raw, $0, mode) }
    if result == -EEXIST { return false }
    try shim("mkdir", on: "\(path)/\(name)") { result }
    return true
  }

  /// Renames a file within this directory. A file at `target` is replaced.
  public func rename(_ name: String, to target: String) throws(SystemCallError) {
    try check(name)
    try check(target)
    let result = name.withCString { from in
      kernelResult(target) { renameat(descriptor.raw, from, descriptor.raw, $0) }
    }
    try shim("rename", on: "\(path)/\(name)") { result }
  }

  /// Removes a file, or a link to one.
  public func remove(_ name: String) throws(SystemCallError) {
    try check(name)
    let result = kernelResult(name) { unlinkat(descriptor.raw, $0, 0) }
    try shim("unlink", on: "\(path)/\(name)") { result }
  }

  /// Reads the status of a file in this directory; for a link, of the link itself.
  public func status(of name: String) throws(SystemCallError) -> stat {
    try check(name)
    var status = stat()
    let result = kernelResult(name) { fstatat(descriptor.raw, $0, &status, AT_SYMLINK_NOFOLLOW) }
    try shim("stat", on: "\(path)/\(name)") { result }
    return status
  }

  /// Gives a file of this directory to a user; for a link, the link itself.
  public func setOwner(
    of name: String, user: uid_t, group: gid_t
  ) throws(SystemCallError) {
    try check(name)
    let result = kernelResult(name) {
      fchownat(descriptor.raw, $0, user, group, AT_SYMLINK_NOFOLLOW)
    }
    try shim("chown", on: "\(path)/\(name)") { result }
  }

  /// Reads the status of the directory itself.
  public func status() throws(SystemCallError) -> stat { try descriptor.readStatus(path) }

  /// Sets the mode of the directory itself, if it is different.
  public func setMode(_ mode: mode_t) throws(SystemCallError) {
    if try status().st_mode & 0o7777 == mode { return }
    try descriptor.setMode(mode, path: path)
  }

  private func check(_ name: String) throws(SystemCallError) {
    if name.isEmpty || name == "." || name == ".." || name.utf8.contains(UInt8(ascii: "/"))
      || name.utf8.contains(0)
    {
      throw SystemCallError("use", on: "\(path)/\(name)", code: EINVAL)
    }
  }
}
