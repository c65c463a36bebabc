import CLinux
import Glibc

/// Descriptors of objects that have no name in a file system.
extension Descriptor {
  /// Makes an unnamed file in memory (memfd_create(2)) with this content. Its offset is 0, so a
  /// reader begins at its start.
  public static func memoryFile(
    _ name: String, _ content: [UInt8]
  ) throws(SystemCallError) -> Descriptor {
    let file = Descriptor(owning: try shim("memfd_create") { clinux_memory_file(name) })
    var written = 0
    while written < content.count {
      written += try systemCall("write", on: name) {
        content.withUnsafeBytes {
          pwrite(
            file.raw, $0.baseAddress?.advanced(by: written), $0.count - written, off_t(written))
        }
      }
    }
    return file
  }

  /// Whether the descriptor is a regular file on the file system where the kernel keeps memfds. The
  /// file isn't read, so a descriptor with O_PATH is enough.
  public func isMemoryFile() throws(SystemCallError) -> Bool {
    try opening("memfd") { () throws(SystemCallError) in
      try shim("memfd_create") { clinux_is_memfd(raw) }
    } == 1
  }

  /// Makes a pipe. Data that is written to one end is read from the other.
  public static func pipe() throws(SystemCallError) -> (reading: Descriptor, writing: Descriptor) {
    var ends: [Int32] = [-1, -1]
    _ = try shim("pipe2") { clinux_pipe(&ends) }
    return (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
  }
}
