import CLinux
import Glibc

/// Shows which pages a process has written. It is a userfaultfd of that process, and only the
/// daemon has a descriptor of it. No thread ever waits for the daemon (clinux_tracking.h). When the
/// daemon ends, the kernel removes the userfaultfd, and the process doesn't notice it.
///
/// Only anonymous mappings are tracked. In a private mapping of a file, a page that was dropped
/// (MADV_DONTNEED) leaves its mark behind. A write to it first makes a marked copy of the file's
/// page, and removes the mark when the instruction is tried again. If the process is stopped
/// between the two, a page with new content counts as unwritten.
public struct WriteTracker: Sendable {
  public let pid: Int32
  private let descriptor: Descriptor

  /// - Parameter descriptor: a new userfaultfd of the process.
  public init(pid: Int32, descriptor: Descriptor) throws(SystemCallError) {
    self.pid = pid
    self.descriptor = descriptor
    try shim("UFFDIO_API", on: "pid \(pid)") { clinux_track_negotiate(descriptor.raw) }
  }

  /// Registers a mapping, so that `PageMap.protect` can track writes to it; it may be registered
  /// already. Memory that is mapped there later, or moved elsewhere, isn't tracked, and the tracker
  /// detects that.
  ///
  /// - Throws: EBUSY if another userfaultfd handles the mapping's page faults; ENOMEM if the
  ///   process has another memory now.
  public func register(_ range: PageRange) throws(SystemCallError) {
    try shim("UFFDIO_REGISTER", on: "0x\(String(range.address, radix: 16)) of pid \(pid)") {
      clinux_track_register(descriptor.raw, range.address, range.length)
    }
  }

  /// Ends the tracking of a mapping, if it is tracked.
  public func unregister(_ range: PageRange) throws(SystemCallError) {
    try unregisterUserfault(descriptor, range, of: pid)
  }
}

extension PageMap {
  /// Records the writes to the range's private pages from now on.
  ///
  /// - Returns: false if the range isn't registered completely with a tracker.
  public func protect(_ range: PageRange) throws(SystemCallError) -> Bool {
    try trackedScan(range, protect: true) { _ in }
  }

  /// Returns the range's private pages that haven't been written since they were protected, by
  /// address. It returns `nil` if that isn't known: the mapping is another one, has been moved, or
  /// isn't tracked.
  public func unwrittenPages(in range: PageRange) throws(SystemCallError) -> [PageRange]? {
    var unwritten: [PageRange] = []
    let isTracked = try trackedScan(range, protect: false) { region in
      if region.categories & UInt64(CLINUX_PAGE_IS_WRITTEN) == 0 {
        unwritten.append(PageRange(from: region.start, to: region.end))
      }
    }
    return isTracked ? unwritten : nil
  }

  private func trackedScan(
    _ range: PageRange, protect: Bool, _ body: (clinux_page_region) -> Void
  ) throws(SystemCallError) -> Bool {
    var buffer = [clinux_page_region](repeating: clinux_page_region(), count: 256)
    var position = range.address
    let end = range.end
    while position < end {
      var walkEnd: UInt64 = 0
      let count = clinux_track_scan(
        descriptor.raw, position, end, &buffer, Int32(buffer.count), protect ? 1 : 0, &walkEnd)
      if count == -EPERM { return false }
      if count == -EINTR { continue }
      if count < 0 {
        throw SystemCallError("PAGEMAP_SCAN", on: "0x\(String(position, radix: 16))", code: -count)
      }
      for region in buffer[..<Int(count)] { body(region) }
      guard walkEnd > position else { break }
      position = walkEnd
    }
    return true
  }
}

extension Injector {
  /// Makes the process open a userfaultfd that can only track writes, duplicates it, and makes the
  /// process close its own descriptor.
  ///
  /// - Parameter opened: called while the userfaultfd is open in both processes.
  public func openWriteTracker(
    opened: () -> Void
  ) throws -> WriteTracker {
    let number = try openTrackingUserfault()
    do {
      let descriptor = try Userfault.duplicate(number, of: session.pid)
      opened()
      try closeDescriptor(number)
      return try WriteTracker(pid: session.pid, descriptor: descriptor)
    } catch {
      // The first error is the one to report.
      try? closeDescriptor(number)
      throw error
    }
  }
}
