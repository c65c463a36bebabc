import Control
import Glibc
import Hibernation
import Linux

extension Probe {
  static let ofStorage = [images, libcrypto, keyring, socket]

  private static let images = Probe(
    id: "state-directory", name: "a place for images", need: .required,
    lost: "The daemon doesn't start. Images on a tmpfs would stay in memory and free "
      + "nothing.",
    enable: "dormouse daemon --state-directory, or XDG_STATE_HOME: a directory of yours on a disk "
      + "with some gigabytes free."
  ) { examination in
    try checkTrust(in: examination.stateDirectory, as: .exclusive)
    let directory = try BorrowedDirectory(
      newIn: examination.stateDirectory, prefix: "doctor-")
    examination.directory = directory
    let file = try Descriptor.open(
      "\(directory.usable)/file", O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    try file.writeAll("dormouse")
    try file.sync(examination.stateDirectory)
    return space(try FileSystem(file), at: escaped(examination.stateDirectory))
  }

  private static let libcrypto = Probe(
    id: "libcrypto", name: "OpenSSL for encrypted images",
    lost: "Where a policy says `hibernate.encrypt`, nothing is hibernated.",
    enable: "OpenSSL's libcrypto.so.3 (Debian: apt-get install libssl3)."
  ) { _ in
    do throws(CryptoLibraryError) { return .works(try CryptoLibrary.tryLoading()) } catch {
      return .missing(escaped(error.reason))
    }
  }

  private static let keyring = Probe(
    id: "keyring", name: "a key for encrypted images",
    lost: "Where a policy says `hibernate.encrypt`, nothing is hibernated.",
    enable: "a kernel with CONFIG_KEYS; in a container, a seccomp profile that permits add_key and "
      + "keyctl; for an ordinary user, a free place among the keys that it may have "
      + "(kernel.keys.maxkeys, /proc/key-users)."
  ) { _ in
    do throws(BootKeyError) { try BootKey.tryKeyring() } catch {
      guard case .unusable(let cause) = error else { throw error }
      throw ProbeFailure("\(cause.call): \(cause.reason)")
    }
    return .works("stored a key in the user keyring and read it back")
  }

  /// Throws if another user could replace files in the directory. The daemon doesn't start with
  /// such a directory, and root's doctor would write and remove files there. If the directory
  /// doesn't exist, the nearest one above it is checked.
  private static func checkTrust(
    in directory: String, as last: DirectoryTrust.Sharing
  ) throws(DirectoryTrustError) {
    var existing = directory
    while isAbsent(existing), let slash = existing.lastIndex(of: "/"), slash > existing.startIndex {
      existing = String(existing[..<slash])
    }
    // The daemon makes a relative path absolute.
    guard existing.hasPrefix("/") else { return }
    _ = try DirectoryTrust.ofThisProcess.open(
      existing, as: existing == directory ? last : .shared)
  }

  private static func space(_ system: FileSystem, at path: String) -> Finding {
    let free = "\(path): \(sizeText(system.free)) free"
    if system.isMemory { return .limited("\(free), but it is in memory (tmpfs)") }
    // The limit is the default of `hibernate.disk.min_free`.
    if system.free < system.size / 20 {
      return .limited("\(free), less than the 5 % that policies leave free by default")
    }
    return .works(free)
  }

  private static let socket = Probe(
    id: "control-socket", name: "a place for the control socket", need: .required,
    lost: "The daemon doesn't start.",
    enable: "dormouse daemon --socket, or DORMOUSE_CONTROL_SOCKET: at most "
      + "\(UnixSocket.maxPath) bytes, in a directory of yours."
  ) { examination in
    let path = examination.socket
    let length = path.utf8.count
    guard length <= UnixSocket.maxPath else {
      return .missing(
        "\(escaped(path)) has \(length) bytes, more than the kernel's limit of "
          + "\(UnixSocket.maxPath)")
    }
    guard let slash = path.lastIndex(of: "/") else {
      return .limited("\(escaped(path)) is a relative path: it depends on the working directory")
    }
    try checkTrust(in: String(path[..<slash]), as: .shared)
    let directory = try BorrowedDirectory(String(path[..<slash]))
    defer { directory.end() }
    // The probe doesn't use the socket's name, which a daemon may be using.
    let trial = "\(directory.path)/.\(getpid())"
    _ = try UnixSocket.bound(to: trial, .stream)
    discardFile(trial)
    return .works("\(escaped(path)), \(length) of \(UnixSocket.maxPath) bytes")
  }
}

/// The file system of a file. Sizes are in bytes.
struct FileSystem {
  var free: Int64
  var size: Int64
  /// True for tmpfs and ramfs.
  var isMemory: Bool

  init(_ file: Descriptor) throws(SystemCallError) {
    var space = statvfs()
    _ = try systemCall("fstatvfs") { fstatvfs(file.raw, &space) }
    free = Self.bytes(space.f_bavail, space.f_frsize)
    size = Self.bytes(space.f_blocks, space.f_frsize)
    let type = Self.type(
      descriptorInformation: try readText("/proc/self/fdinfo/\(file.raw)"),
      mounts: try readText("/proc/self/mountinfo"))
    isMemory = type == "tmpfs" || type == "ramfs"
  }

  /// Returns the type of the mount that a descriptor is on. Its `mnt_id` in proc_pid_fdinfo(5) is
  /// the first word of its line in proc_pid_mountinfo(5), where the type follows a lone `-`.
  static func type(descriptorInformation: String, mounts: String) -> Substring? {
    let identifying = descriptorInformation.split(separator: "\n").first {
      $0.hasPrefix("mnt_id:")
    }
    guard let mount = identifying?.dropFirst(7).drop(while: { $0 == "\t" || $0 == " " }) else {
      return nil
    }
    for line in mounts.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard fields.first == mount, let dash = fields.firstIndex(of: "-"), dash + 1 < fields.count
      else { continue }
      return fields[dash + 1]
    }
    return nil
  }

  private static func bytes(_ blocks: UInt, _ size: UInt) -> Int64 {
    Int64(clamping: blocks.multipliedReportingOverflow(by: size).partialValue)
  }
}
