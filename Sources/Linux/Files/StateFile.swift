import CLinux
import Glibc

/// A file that is replaced as a whole. Its new content is written to a second file beside it (the
/// partial file), which gets the file's name when it is complete. So whenever the process ends, the
/// file has either the old content or the new one.
///
/// The partial file is removed when a step fails, and when this object is freed without `commit`.
/// The next replacement removes one that a killed process has left. If that process still runs, its
/// `commit` fails with EBUSY.
public final class StateFile {
  /// The failures that the new content survives, in addition to the end of the process.
  public enum Durability: Sendable, CaseIterable {
    /// It survives no crash of the machine: after one, the file is probably empty. It is meant for
    /// content that is useless after a boot. It needs a third of the time of `none`.
    case untilBoot
    /// It isn't guaranteed to survive a crash of the machine: the file may be empty or torn
    /// afterwards. On ext4 it mostly isn't.
    case none
    /// After a crash of the machine the file has either the old content or the new one.
    case data
    /// After a crash of the machine the file has either the old content or the new one, and the new
    /// one if `commit` has returned.
    case dataAndDirectory
  }

  /// The steps that may fail. If `syncDirectory` fails, the file already has the new content.
  enum Step: CaseIterable { case create, write, sync, rename, syncDirectory }
  /// A hook for tests, called before each step. If it throws, the step fails.
  typealias Fault = (Step) throws(SystemCallError) -> Void

  private let location: Location
  private let file: Descriptor
  private let fault: Fault?
  /// True if the partial file has got the file's name, or is removed.
  private var isFinished = false

  /// Creates the partial file.
  ///
  /// - Parameters:
  ///   - mode: the mode of the new file; the process's umask applies.
  ///   - partialSuffix: added to the file's name for the partial file. No other file of the
  ///     directory may have such a name.
  public convenience init(
    _ path: String, mode: mode_t = 0o600, partialSuffix: String = ".partial"
  ) throws(SystemCallError) {
    try self.init(.path(path, partial: path + partialSuffix), mode: mode, fault: nil)
  }

  /// Creates the partial file of a file in an open directory.
  public convenience init(
    _ name: String, in directory: DirectoryHandle, mode: mode_t = 0o600,
    partialSuffix: String = ".partial"
  ) throws(SystemCallError) {
    try self.init(
      .entry(name, partial: name + partialSuffix, of: directory), mode: mode, fault: nil)
  }

  init(_ location: Location, mode: mode_t, fault: Fault?) throws(SystemCallError) {
    self.location = location
    self.fault = fault
    try fault?(.create)
    // With O_EXCL, this file inherits nothing from an earlier partial file, such as its mode.
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
    do throws(SystemCallError) {
      file = try location.openPartial(flags, mode)
    } catch {
      guard error.code == EEXIST else { throw error }
      try location.removePartial()
      file = try location.openPartial(flags, mode)
    }
  }

  deinit { discard() }

  /// Replaces the file's content. If this throws, the file has the old content, unless
  /// `.dataAndDirectory` is requested and the directory couldn't be synced.
  public static func replace(
    _ path: String, with bytes: [UInt8], mode: mode_t = 0o600, durability: Durability,
    partialSuffix: String = ".partial"
  ) throws(SystemCallError) {
    let file = try StateFile(path, mode: mode, partialSuffix: partialSuffix)
    try file.write(bytes)
    try file.commit(durability)
  }

  /// Replaces the content of a file in an open directory.
  public static func replace(
    _ name: String, in directory: DirectoryHandle, with bytes: [UInt8], mode: mode_t = 0o600,
    durability: Durability
  ) throws(SystemCallError) {
    let file = try StateFile(name, in: directory, mode: mode)
    try file.write(bytes)
    try file.commit(durability)
  }

  /// Appends to the new content.
  public func write(_ bytes: [UInt8]) throws(SystemCallError) {
    try perform { () throws(SystemCallError) in
      try fault?(.write)
      do throws(SystemCallError) { try file.writeAll(bytes) } catch {
        throw error.on(location.partial)
      }
    }
  }

  /// Gives the new file the mode and the owner in `status`. The umask doesn't apply. If this isn't
  /// root, a file of another user becomes that of this process's user.
  public func keep(modeAndOwnerOf status: stat) throws(SystemCallError) {
    try perform { () throws(SystemCallError) in
      // Another group gets no right to write.
      let kept: mode_t = try keepGroup(of: status) ? 0o7777 : 0o755
      try file.setMode(status.st_mode & kept, path: location.partial)
    }
  }

  /// Gives the new file the group in `status`, and the user if possible. Only root may give a file
  /// to another user, and an ordinary user only to its own groups.
  ///
  /// - Returns: false if it has another group, and every user may read the file in any case.
  private func keepGroup(of status: stat) throws(SystemCallError) -> Bool {
    let current = try file.readStatus(location.partial)
    if current.st_uid == status.st_uid, current.st_gid == status.st_gid { return true }
    for user in [status.st_uid, current.st_uid] {
      do throws(SystemCallError) {
        try file.setOwner(user: user, group: status.st_gid, path: location.partial)
        return true
      } catch {
        if error.code != EPERM { throw error }
      }
    }
    if status.st_mode & 0o004 != 0 { return false }
    throw SystemCallError("fchown", on: location.partial, code: EPERM)
  }

  /// Gives the partial file the file's name. Nothing can be written afterwards.
  public func commit(_ durability: Durability) throws(SystemCallError) {
    try perform { () throws(SystemCallError) in
      if durability != .none, durability != .untilBoot {
        try fault?(.sync)
        try file.sync(location.partial)
      }
      if durability == .untilBoot { BootMark.set(on: file) }
      try fault?(.rename)
      if isLost { throw SystemCallError("rename", on: location.partial, code: EBUSY) }
      try durability == .untilBoot ? location.exchange() : location.rename()
      isFinished = true
      if durability == .dataAndDirectory {
        try fault?(.syncDirectory)
        try location.syncDirectory()
      }
    }
  }

  /// Removes the partial file; the old content stays. Does nothing after `commit`.
  public func discard() {
    if isFinished { return }
    isFinished = true
    if isLost { return }
    // If it can't be removed, the next replacement removes it.
    try? location.removePartial()
  }

  /// True if another process has removed the partial file, to begin a replacement of its own. A
  /// file of that name belongs to that process then, and isn't complete.
  private var isLost: Bool {
    guard let status = file.status, status.st_nlink == 0 else { return false }
    return linkStatus(of: location.partial)?.isSameFile(as: status) != true
  }

  private func perform(_ body: () throws(SystemCallError) -> Void) throws(SystemCallError) {
    if isFinished { throw SystemCallError("write", on: location.partial, code: EBADF) }
    do throws(SystemCallError) { try body() } catch {
      discard()
      throw error
    }
  }

  // MARK: the location

  enum Location {
    case path(String, partial: String)
    case entry(String, partial: String, of: DirectoryHandle)

    /// The path of the partial file, for messages.
    var partial: String {
      switch self {
      case .path(_, let partial): partial
      case .entry(_, let partial, let directory): "\(directory.path)/\(partial)"
      }
    }

    func openPartial(_ flags: Int32, _ mode: mode_t) throws(SystemCallError) -> Descriptor {
      switch self {
      case .path(_, let partial): try Descriptor.open(partial, flags, mode: mode)
      case .entry(_, let partial, let directory): try directory.open(partial, flags, mode: mode)
      }
    }

    func removePartial() throws(SystemCallError) {
      switch self {
      case .path(_, let partial): try removeFile(partial)
      case .entry(_, let partial, let directory): try directory.remove(partial)
      }
    }

    func rename() throws(SystemCallError) {
      switch self {
      case .path(let path, let partial): try renameFile(partial, to: path)
      case .entry(let name, let partial, let directory): try directory.rename(partial, to: name)
      }
    }

    /// Gives the partial file the file's name, for `untilBoot`. When a name is replaced, ext4
    /// begins to write the new file to the disk at once, and the rename costs 0.2 ms, or several if
    /// the disk is busy. So the two files exchange their names, and the old one is removed (0.07
    /// ms).
    func exchange() throws(SystemCallError) {
      // The exchange fails if there is no old file, or if the file system doesn't support it.
      guard case .path(let path, let partial) = self, clinux_exchange(partial, path) == 0 else {
        return try rename()
      }
      do throws(SystemCallError) { try removePartial() } catch {
        // The old file is a directory.
        _ = clinux_exchange(partial, path)
        throw error
      }
    }

    func syncDirectory() throws(SystemCallError) {
      switch self {
      case .path(let path, _):
        let slash = path.lastIndex(of: "/")
        let parent = slash.map { String(path[...$0]) } ?? "."
        try Descriptor.open(parent, O_RDONLY | O_DIRECTORY).sync(parent)
      case .entry(_, _, let directory): try directory.descriptor.sync(directory.path)
      }
    }
  }
}
