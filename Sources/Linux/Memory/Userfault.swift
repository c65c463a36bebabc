import CLinux
import Glibc

/// A userfaultfd of another process: a thread that accesses a missing page in a registered range
/// waits until this process fills the page.
public struct Userfault: Sendable {
  public let descriptor: Descriptor
  public let pid: Int32
  /// True if it records writes to the pages that it has filled, as a `WriteTracker` does.
  public private(set) var tracksWrites = false

  public init(descriptor: Descriptor, pid: Int32) {
    self.descriptor = descriptor
    self.pid = pid
  }

  /// Duplicates descriptor `number` of the process. That needs the right to trace it.
  public static func duplicate(_ number: Int32, of pid: Int32) throws(SystemCallError) -> Descriptor
  {
    try Yama.check("pidfd_getfd", pid)
    let process = try Descriptor.pidfd(of: pid)
    return Descriptor(
      owning: try shim("pidfd_getfd", on: "descriptor \(number) of pid \(pid)") {
        clinux_pidfd_getfd(process.raw, number)
      })
  }

  /// Duplicates the process's descriptor `number` if that is a userfaultfd; otherwise it returns
  /// nil.
  ///
  /// The kind is checked before, because closing the last reference to a file of a worker's own
  /// file system (FUSE) can block. It is checked again after, because the process may run.
  public static func find(
    _ number: Int32, of process: ProcessIdentity
  ) throws(SystemCallError) -> Descriptor? {
    guard readLink("/proc/\(process.pid)/fd/\(number)") == link else { return nil }
    let pidfd = try process.openPidfd()
    let descriptor = Descriptor(
      owning: try shim("pidfd_getfd", on: "descriptor \(number) of pid \(process.pid)") {
        clinux_pidfd_getfd(pidfd.raw, number)
      })
    return isUserfault(descriptor.raw) ? descriptor : nil
  }

  private static let link = "anon_inode:[userfaultfd]"

  /// Whether a descriptor of this process is a userfaultfd.
  public static func isUserfault(_ number: Int32) -> Bool {
    readLink("/proc/self/fd/\(number)") == link
  }

  /// Negotiates the features with the kernel, which is possible once for each userfaultfd. If this
  /// process may not, the package's service does it.
  ///
  /// - Throws: a `SystemCallError`, or a `UserfaultService.Failure`.
  public mutating func negotiate(tracksWrites: Bool) throws {
    do throws(SystemCallError) {
      try shim("UFFDIO_API", on: "pid \(pid)") {
        clinux_uffd_negotiate(descriptor.raw, tracksWrites ? 1 : 0)
      }
    } catch {
      guard error.code == EPERM else { throw error }
      try UserfaultService.negotiate(descriptor, tracksWrites: tracksWrites)
    }
    self.tracksWrites = tracksWrites
  }

  /// Uses the features that another process has negotiated, or negotiates without `tracksWrites`.
  ///
  /// - Throws: a `SystemCallError`, or a `UserfaultService.Failure`.
  public mutating func adopt() throws {
    // A second negotiation isn't tried: the kernel refuses it with EINVAL, and to an ordinary user
    // each one with EPERM.
    let state = try shim("fdinfo", on: "userfaultfd of pid \(pid)") {
      clinux_uffd_state(descriptor.raw)
    }
    if Int(state) == CLINUX_UFFD_NEW { return try negotiate(tracksWrites: false) }
    tracksWrites = Int(state) == CLINUX_UFFD_TRACKING
  }

  /// Registers a range: from now on this process must fill its missing pages.
  public func register(_ range: PageRange) throws(SystemCallError) {
    try shim("UFFDIO_REGISTER", on: "0x\(String(range.address, radix: 16)) of pid \(pid)") {
      clinux_uffd_register(
        descriptor.raw, range.address, range.length, tracksWrites ? 1 : 0)
    }
  }

  /// Makes a range ordinary memory again.
  public func unregister(_ range: PageRange) throws(SystemCallError) {
    try unregisterUserfault(descriptor, range, of: pid)
  }

  /// Makes every range of a frozen process ordinary memory again. It needs a tenth of the time of
  /// `unregisterAll`, because it doesn't read smaps, for which the kernel walks the pages.
  public func unregisterAllOfFrozen() throws(SystemCallError) {
    for line in try readFile("/proc/\(pid)/maps").split(separator: 10) {
      guard let mapping = MemoryMapping(header: line), !mapping.hasFile else { continue }
      do throws(SystemCallError) {
        try unregisterUserfault(descriptor, mapping.range, of: pid)
      } catch {
        // It executes another program by now, or the kernel is short of memory: smaps shows which.
        guard error.code == ENOMEM else { throw error }
        return try unregisterAll()
      }
    }
  }

  /// Makes every range ordinary memory again, whatever the process has done with its mappings. A
  /// thread that waits for a page then gets the present content, or zeros if the page is missing.
  public func unregisterAll() throws(SystemCallError) {
    var failure = EBUSY
    for _ in 0..<100 {
      let mappings: [MemoryMapping]
      do throws(SystemCallError) { mappings = try MemoryMapping.all(of: pid) } catch {
        if error.meansVanished { return }
        throw error
      }
      let registered = mappings.filter { $0.flags.contains(.userfault) }
      if registered.isEmpty { return }
      for mapping in registered {
        // The mapping may have moved since it was listed. Then the next list has it.
        let result = clinux_uffd_unregister(descriptor.raw, mapping.start, mapping.length)
        if result == -ENOMEM { failure = ENOMEM }
      }
    }
    throw SystemCallError("UFFDIO_UNREGISTER", on: "pid \(pid)", code: failure)
  }

  /// The result of an attempt to fill pages.
  public enum Filling: Equatable, Sendable {
    case filled(UInt64)
    /// A page is already present.
    case present
    /// The range isn't in a registered mapping, or extends beyond one.
    case notRegistered
    /// An event must be read first.
    case eventFirst
    /// The process has no memory any more.
    case vanished
  }

  /// Fills missing pages from `source`.
  ///
  /// - Parameters:
  ///   - tracked: true: writes to these pages are recorded, if this userfaultfd does that. The
  ///     first write to each page costs a fault.
  ///   - wakes: false: threads that wait for these pages wait on until `wake`.
  public func fill(
    _ address: UInt64, _ length: UInt64, from source: UnsafeRawPointer, tracked: Bool,
    wakes: Bool = true
  ) throws(SystemCallError) -> Filling {
    let protects: Int32 = tracked && tracksWrites ? 1 : 0
    return try outcome(
      clinux_uffd_copy(descriptor.raw, address, source, length, protects, wakes ? 1 : 0), address)
  }

  /// Fills missing pages with zeros.
  public func fillZeros(
    _ address: UInt64, _ length: UInt64 = pageSize
  ) throws(SystemCallError) -> Filling {
    try outcome(clinux_uffd_zero(descriptor.raw, address, length), address)
  }

  private func outcome(_ result: Int64, _ address: UInt64) throws(SystemCallError) -> Filling {
    if result >= 0 { return .filled(UInt64(result)) }
    switch Int32(truncatingIfNeeded: -result) {
    case EEXIST: return .present
    // The kernel looks for the mapping before it looks for an event (Linux 6.9 and later), and
    // doesn't find one that is being moved. Its event is in flight until it is read.
    case ENOENT: return hasEventInFlight ? .eventFirst : .notRegistered
    case EAGAIN: return .eventFirst
    case ESRCH: return .vanished
    case let code:
      throw SystemCallError(
        "UFFDIO_COPY", on: "0x\(String(address, radix: 16)) of pid \(pid)", code: code)
    }
  }

  /// Wakes the threads that wait for these pages.
  public func wake(_ address: UInt64, _ length: UInt64) {
    _ = clinux_uffd_wake(descriptor.raw, address, length)
  }

  /// True if a message can be read.
  public var isReadable: Bool {
    makeNonblocking()
    var polled = pollfd(fd: descriptor.raw, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, 0) == 1 && polled.revents & Int16(POLLIN) != 0
  }

  /// Sets O_NONBLOCK again. The process has the same open file, and can clear the flag at any time:
  /// poll(2) and epoll(7) then report an error until it is set.
  ///
  /// - Returns: true if it was cleared.
  @discardableResult
  public func makeNonblocking() -> Bool { clinux_uffd_make_nonblocking(descriptor.raw) == 1 }

  /// True if a fork, mremap, munmap or madvise of the process waits, or is about to wait, until its
  /// event is read.
  public var hasEventInFlight: Bool { clinux_uffd_event_in_flight(descriptor.raw) == 1 }
}

/// Makes a range ordinary memory again, if it is registered.
///
/// - Throws: ENOMEM if the process has another memory now, or the kernel is short of memory.
func unregisterUserfault(
  _ descriptor: Descriptor, _ range: PageRange, of pid: Int32
) throws(SystemCallError) {
  let result = clinux_uffd_unregister(descriptor.raw, range.address, range.length)
  // EINVAL means a mapping of a kind that can't be registered.
  if result == 0 || result == -EINVAL { return }
  throw SystemCallError(
    "UFFDIO_UNREGISTER", on: "0x\(String(range.address, radix: 16)) of pid \(pid)", code: -result)
}
