import CLinux
import Glibc

/// Another process's memory, through `/proc/PID/mem`.
///
/// The descriptor belongs to one address space. If the process ends and another one gets its pid,
/// the descriptor reads and writes nothing, whereas `process_vm_writev(2)` has a pid as its
/// argument and would write into the other process. So everything is written through the
/// descriptor. Reading by pid (`direct`) is faster; a caller that keeps the data checks the
/// process's identity afterwards.
///
/// Pages that the process itself may not write (or read) need more rights on some kernels: see
/// `ForcedAccess`.
///
/// A later daemon, which isn't the parent, may not be able to open the memory. A descriptor that is
/// open keeps working, so it is kept open from the worker's launch on.
public struct ProcessMemory: Sendable {
  public let pid: Int32
  public let descriptor: Descriptor
  /// True if the process is at rest, and some of its memory is registered with a userfaultfd that
  /// is served by no process. Then nothing is read directly, which would wait for a missing page.
  public var mayLackPages = false

  public init(pid: Int32) throws(SystemCallError) {
    self.pid = pid
    try Yama.check("open", pid, code: EACCES)
    descriptor = try Descriptor.open("/proc/\(pid)/mem", O_RDWR)
  }

  /// Opens the memory of exactly this process: its identity is checked again when the descriptor is
  /// open.
  ///
  /// - Throws: ESRCH if the process has ended, or if another one has its pid. After any other error
  ///   the process may still exist.
  public init(of process: ProcessIdentity) throws(SystemCallError) {
    try self.init(pid: process.pid)
    try process.checkLife("open", on: "memory of pid \(process.pid)")
  }

  public init(pid: Int32, descriptor: Descriptor) {
    self.pid = pid
    self.descriptor = descriptor
  }

  /// Reads the ranges one after the other into `buffer`, which must have room for all of them. With
  /// `mayLackPages`, a missing page reads as zeros.
  ///
  /// - Parameter direct: true: reads by pid, with one call for all ranges, if that is possible.
  public func read(
    _ ranges: [PageRange], into buffer: UnsafeMutableRawPointer, direct: Bool
  ) throws(SystemCallError) {
    var done: UInt64 = 0
    if direct, !mayLackPages {
      let all = UnsafeMutableRawBufferPointer(start: buffer, count: Int(ranges.bytes))
      // If it fails, the read starts again through the file, which is slower and can read all
      // memory.
      if (try? ranges.readDirectly(from: pid, into: all)) == all.count { return }
    }
    for range in ranges {
      do throws(SystemCallError) {
        try transfer(range, buffer + Int(done), writing: false)
      } catch {
        guard mayLackPages, error.code == EIO else { throw error }
        try readPages(of: range, into: buffer + Int(done))
      }
      done += range.length
    }
  }

  /// Reads a range page by page. At any time, the kernel may discard pages that the program has
  /// freed (MADV_FREE), and permits zeros in their place.
  private func readPages(
    of range: PageRange, into buffer: UnsafeMutableRawPointer
  ) throws(SystemCallError) {
    let pages = try PageMap(pid: pid)
    for address in range.pages {
      let page = PageRange(address: address, length: pageSize)
      let target = buffer + Int(address - range.address)
      do throws(SystemCallError) { try transfer(page, target, writing: false) } catch {
        guard error.code == EIO,
          try pages.populatedPages(from: page.address, to: page.end).isEmpty
        else { throw error }
        memset(target, 0, Int(pageSize))
      }
    }
  }

  /// Writes `buffer` to the ranges, one after the other.
  public func write(
    _ ranges: [PageRange], from buffer: UnsafeRawPointer
  ) throws(SystemCallError) {
    var done: UInt64 = 0
    for range in ranges {
      try transfer(range, UnsafeMutableRawPointer(mutating: buffer) + Int(done), writing: true)
      done += range.length
    }
  }

  /// Reads a few bytes at one address.
  public func readBytes(at address: UInt64, count: Int) throws(SystemCallError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    try transfer(PageRange(address: address, length: UInt64(count)), &bytes, writing: false)
    return bytes
  }

  public func writeBytes(_ bytes: [UInt8], at address: UInt64) throws(SystemCallError) {
    var bytes = bytes
    let range = PageRange(address: address, length: UInt64(bytes.count))
    try transfer(range, &bytes, writing: true)
  }

  private func transfer(
    _ range: PageRange, _ buffer: UnsafeMutableRawPointer, writing: Bool
  ) throws(SystemCallError) {
    var done: UInt64 = 0
    while done < range.length {
      let offset = off_t(Int64(bitPattern: range.address + done))
      let remaining = Int(range.length - done)
      let subject = "memory of pid \(pid) at 0x\(String(range.address + done, radix: 16))"
      try ForcedAccess.check(
        writing ? "write" : "read", on: pid, range, writing: writing)
      let count = try systemCall(writing ? "write" : "read", on: subject) {
        writing
          ? pwrite(descriptor.raw, buffer + Int(done), remaining, offset)
          : pread(descriptor.raw, buffer + Int(done), remaining, offset)
      }
      // The end of the file means that the process has ended.
      if count == 0 { throw SystemCallError("reach", on: subject, code: ESRCH) }
      done += UInt64(count)
    }
  }
}
