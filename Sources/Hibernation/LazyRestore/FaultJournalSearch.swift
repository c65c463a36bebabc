import CLinux
import Glibc
import Linux

extension FaultJournal {
  /// Finds the journals among a process's descriptors, with their headers. A forked child has its
  /// parent's journals too. A process that has ended has none.
  ///
  /// - Throws: an error if the descriptors can't be listed or opened now: the process may have a
  ///   journal.
  static func all(
    in pid: Int32
  ) throws(SystemCallError) -> [(file: Descriptor, header: Header)] {
    let directory = "/proc/\(pid)/fd"
    let entries: [String]
    do throws(SystemCallError) { entries = try listDirectory(directory) } catch {
      if error.unlessHidden(pid).meansVanished { return [] }
      throw error
    }
    var journals: [(file: Descriptor, header: Header)] = []
    for entry in entries {
      let link = "\(directory)/\(entry)"
      guard readLink(link) == "/memfd:\(name) (deleted)" else { continue }
      do throws(SystemCallError) {
        guard let file = try open(link), let header = try header(of: file) else { continue }
        journals.append((file, header))
      } catch {
        if error.isShortage { throw error }
        // The descriptor was closed, or the file belongs to another user: it is no journal of this
        // daemon.
      }
    }
    return journals
  }

  /// Returns true if pages of the process are in an image only, as its journal says. Nothing is
  /// changed: another process may use the journal.
  static func hasMissingPages(_ process: ProcessIdentity) throws(SystemCallError) -> Bool {
    for (file, header) in try all(in: process.pid)
    where header.isTrusted && header.process == process {
      let bytes = try file.readBytes(upTo: 8, at: 48)
      guard bytes.count == 8 else { continue }
      switch Phase(rawValue: bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }) {
      case .preparing, .filling, .trimmed, .handedOver: return true
      case .idle, .complete, nil: continue
      }
    }
    return false
  }

  private static func header(of file: Descriptor) throws(SystemCallError) -> Header? {
    let bytes = try file.readBytes(upTo: 64, at: 0)
    guard bytes.count == 64 else { return nil }
    let words = bytes.withUnsafeBytes { bytes in
      (0..<8).map { bytes.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self) }
    }
    return Header(words, isPrivateFile: clinux_is_private_memfd(file.raw, length) == 1)
  }

  /// Opens a descriptor of the worker that has a journal's name, or returns `nil` if it isn't a
  /// journal. The name proves nothing: a worker can give it to a FIFO, which would block the
  /// daemon, or to a file of its own file system (FUSE), which may never answer. So the file is
  /// first referenced with O_PATH, which opens nothing. It is opened only if it is on the file
  /// system of memfds.
  private static func open(_ link: String) throws(SystemCallError) -> Descriptor? {
    let reference = try Descriptor.open(link, Int32(CLINUX_O_PATH))
    guard try reference.isMemoryFile() else { return nil }
    return try Descriptor.open("/proc/self/fd/\(reference.raw)", O_RDWR | O_NONBLOCK)
  }
}
