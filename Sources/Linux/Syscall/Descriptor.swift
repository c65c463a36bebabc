import CLinux
import Glibc

/// Owns a file descriptor and closes it when the object is freed. It is a class, so that several
/// owners (the event loop, a worker) can share one; the last owner closes it.
public final class Descriptor: Sendable {
  public let raw: Int32
  /// Closes it if its last close may wait.
  private let closer: Closer?

  public init(owning raw: Int32) {
    self.raw = raw
    closer = nil
  }

  /// Owns a descriptor of something that another process has made, or to which it can send
  /// descriptors. That process can make the last close wait without limit (SO_LINGER, FUSE), so the
  /// descriptor is closed on another thread by `Closer`.
  public init(foreign raw: Int32) {
    self.raw = raw
    closer = .shared
  }

  /// Owns a descriptor that another process has sent, as `init(foreign:)` does.
  init(received raw: Int32) {
    self.raw = raw
    closer = .received
  }

  deinit {
    if let closer { closer.close(raw) } else { close(raw) }
  }

  /// Releases a lock of flock(2), including one that is shared with copies of this descriptor. It
  /// can't fail.
  public func unlock() { _ = flock(raw, LOCK_UN) }

  /// Opens a file; `O_CLOEXEC` is added.
  public static func open(
    _ path: String, _ flags: Int32 = O_RDONLY, mode: mode_t = 0
  ) throws(SystemCallError) -> Descriptor {
    Descriptor(
      owning: try opening(path) { () throws(SystemCallError) in
        try shim("open", on: path) { clinux_open(path, flags | O_CLOEXEC, mode) }
      })
  }

  /// Opens a process as a descriptor (pidfd_open(2)).
  public static func pidfd(of pid: Int32) throws(SystemCallError) -> Descriptor {
    Descriptor(
      owning: try opening("pidfd of \(pid)") { () throws(SystemCallError) in
        try shim("pidfd_open", on: "pid \(pid)") { clinux_pidfd_open(pid) }
      })
  }

  /// Opens a single thread as a descriptor.
  ///
  /// - Throws: EINVAL before Linux 6.9.
  public static func pidfd(ofThread thread: Int32) throws(SystemCallError) -> Descriptor {
    Descriptor(
      owning: try shim("pidfd_open", on: "thread \(thread)") { clinux_pidfd_open_thread(thread) })
  }

  /// Reads at most `capacity` bytes. The result is empty at the end of the file.
  public func read(upTo capacity: Int) throws(SystemCallError) -> [UInt8] {
    var failure: SystemCallError?
    let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
      do throws(SystemCallError) {
        count = try systemCall("read") { Glibc.read(raw, buffer.baseAddress, capacity) }
      } catch {
        failure = error
        count = 0
      }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Writes all bytes from the current offset on, with as many calls as that needs.
  public func writeAll(_ bytes: UnsafeRawBufferPointer) throws(SystemCallError) {
    var remaining = bytes[...]
    while !remaining.isEmpty {
      let chunk = UnsafeRawBufferPointer(rebasing: remaining)
      let count = try systemCall("write") { Glibc.write(raw, chunk.baseAddress, chunk.count) }
      remaining = remaining.dropFirst(count)
    }
  }

  public func writeAll(_ bytes: [UInt8]) throws(SystemCallError) {
    try bytes.withUnsafeBufferPointer { (buffer) throws(SystemCallError) in
      try writeAll(UnsafeRawBufferPointer(buffer))
    }
  }

  public func writeAll(_ text: String) throws(SystemCallError) { try writeAll(Array(text.utf8)) }
}

/// Reads a whole small file, such as those of /proc, whose size isn't known beforehand.
public func readFile(_ path: String) throws(SystemCallError) -> [UInt8] {
  // If a FIFO is at this path, the open doesn't wait for a writer, and the file reads as empty.
  let file = try Descriptor.open(path, O_RDONLY | O_NONBLOCK)
  var bytes: [UInt8] = []
  while true {
    let chunk: [UInt8]
    do throws(SystemCallError) { chunk = try file.read(upTo: 65536) } catch {
      throw error.on(path)
    }
    if chunk.isEmpty { return bytes }
    bytes += chunk
  }
}

/// Reads a whole small file as text. Invalid UTF-8 is repaired.
public func readText(_ path: String) throws(SystemCallError) -> String {
  String(decoding: try readFile(path), as: UTF8.self)
}

/// Writes to a control file of the kernel (cgroup, /proc) with one call.
public func writeControl(_ path: String, _ text: String) throws(SystemCallError) {
  let file = try Descriptor.open(path, O_WRONLY)
  do throws(SystemCallError) { try file.writeAll(text) } catch { throw error.on(path) }
}

/// Reads the target of a symbolic link; nil if it can't be read.
public func readLink(_ path: String) -> String? {
  withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
    guard let start = buffer.baseAddress else { return nil }
    let count = kernelResult(path) { readlink($0, start, buffer.count) }
    return count < 0
      ? nil : String(decoding: UnsafeRawBufferPointer(buffer).prefix(count), as: UTF8.self)
  }
}
