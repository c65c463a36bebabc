import Glibc

/// Operations on an open file. Errors name `path`, because a descriptor doesn't know the path it
/// was opened by.
extension Descriptor {
  /// Reads the file's status with fstat(2).
  public func readStatus(_ path: String = "") throws(SystemCallError) -> stat {
    var status = stat()
    _ = try systemCall("fstat", on: path) { fstat(raw, &status) }
    return status
  }

  /// The file's status; nil if the kernel refuses.
  public var status: stat? {
    var status = stat()
    return fstat(raw, &status) == 0 ? status : nil
  }

  /// The size of a regular file in bytes; nil for any other kind.
  public var fileSize: Int64? {
    status.flatMap { $0.isRegularFile ? Int64($0.st_size) : nil }
  }

  /// Calls pread(2) once and returns how many bytes were read; 0 at the end of the file.
  public func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, call: String = "pread",
    path: String = ""
  ) throws(SystemCallError) -> Int {
    try systemCall(call, on: path) { pread(raw, buffer.baseAddress, buffer.count, off_t(offset)) }
  }

  /// Calls pread(2) once and returns the bytes. There are fewer than `capacity` near the end of the
  /// file.
  public func readBytes(
    upTo capacity: Int, at offset: Int64, path: String = ""
  ) throws(SystemCallError) -> [UInt8] {
    var failure: SystemCallError?
    let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
      do throws(SystemCallError) {
        count = try read(into: UnsafeMutableRawBufferPointer(buffer), at: offset, path: path)
      } catch {
        failure = error
        count = 0
      }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Calls pwrite(2) once and returns how many bytes were written.
  public func write(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, path: String = ""
  ) throws(SystemCallError) -> Int {
    try systemCall("write", on: path) { pwrite(raw, bytes.baseAddress, bytes.count, off_t(offset)) }
  }

  /// Waits until the disk has the file and its metadata (fsync(2)).
  public func sync(_ path: String) throws(SystemCallError) {
    _ = try systemCall("fsync", on: path) { fsync(raw) }
  }

  /// Waits until the disk has the file's bytes (fdatasync(2)).
  public func syncData(_ path: String) throws(SystemCallError) {
    _ = try systemCall("fdatasync", on: path) { fdatasync(raw) }
  }

  /// Sets the offset at which the next read or write begins.
  public func seek(to offset: Int64, path: String) throws(SystemCallError) {
    _ = try systemCall("lseek", on: path) { lseek(raw, off_t(offset), SEEK_SET) }
  }

  public func truncate(to length: Int64, path: String) throws(SystemCallError) {
    _ = try systemCall("ftruncate", on: path) { ftruncate(raw, off_t(length)) }
  }

  public func setMode(_ mode: mode_t, path: String) throws(SystemCallError) {
    _ = try systemCall("fchmod", on: path) { fchmod(raw, mode) }
  }

  public func setOwner(user: uid_t, group: gid_t, path: String) throws(SystemCallError) {
    _ = try systemCall("fchown", on: path) { fchown(raw, user, group) }
  }

  /// Sets those flags that can change (F_SETFL in fcntl(2)). Without `O_NONBLOCK` the descriptor's
  /// calls wait.
  public func setFlags(_ flags: Int32) throws(SystemCallError) {
    _ = try systemCall("fcntl") { fcntl(raw, F_SETFL, flags) }
  }
}

/// Calls poll(2), and repeats it if a signal interrupts it. It returns how many descriptors have
/// events.
@discardableResult
public func waitForEvents(
  _ entries: inout [pollfd], milliseconds: @autoclosure () -> Int32
) throws(SystemCallError) -> Int {
  Int(try systemCall("poll") { poll(&entries, nfds_t(entries.count), milliseconds()) })
}

extension Descriptor {
  /// True if the descriptor accepts output now, or has failed.
  public var isWritable: Bool {
    var entry = pollfd(fd: raw, events: Int16(POLLOUT), revents: 0)
    return poll(&entry, 1, 0) > 0
  }
}
