import CLinux
import Glibc
import Linux

extension FaultJournal {
  /// The journals among a process's descriptors, with their headers. A forked child has its parent's journals
  /// too.
  static func all(in pid: Int32) -> [(file: Descriptor, header: Header)] {
    let directory = "/proc/\(pid)/fd"
    // A process that has ended has no journals.
    return ((try? listDirectory(directory)) ?? []).compactMap { entry in
      guard readLink("\(directory)/\(entry)") == "/memfd:\(name) (deleted)",
        let file = open("\(directory)/\(entry)")
      else { return nil }
      var words = [UInt64](repeating: 0, count: 8)
      // A journal that can't be read belongs to another process or is closed.
      let count = words.withUnsafeMutableBytes { try? file.read(into: $0, at: 0) }
      let isOwn = clinux_is_private_memfd(file.raw, length) == 1
      guard count == 64, let header = Header(words, isOwnFile: isOwn) else { return nil }
      return (file, header)
    }
  }

  /// Opens a descriptor of the worker that has a journal's name. The name proves nothing: a worker can give
  /// it to a FIFO, which would block the daemon, or to a file of its own file system (FUSE), which may never
  /// answer. So the file is first referenced with O_PATH, which opens nothing. It is opened only if it lies
  /// on the file system of memfds.
  private static func open(_ link: String) -> Descriptor? {
    let held = clinux_open_place(link)
    guard held >= 0 else { return nil }
    let place = Descriptor(owning: held)
    guard clinux_is_memfd(place.raw) == 1 else { return nil }
    // A file that can't be opened counts as no journal.
    return try? Descriptor.open("/proc/self/fd/\(place.raw)", O_RDWR | O_NONBLOCK)
  }
}
