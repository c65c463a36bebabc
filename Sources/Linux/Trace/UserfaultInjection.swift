import CLinux
import Glibc

extension Injector {
  /// The lowest number of Dormouse's descriptors in a process. It is high, because programs count
  /// from 0. It is within the process's table of descriptors: to enlarge a table that threads
  /// share, the kernel waits for all processors (RCU), which took 10 to 16 ms here (Linux 6.18).
  private var firstDescriptor: UInt64 {
    // If the size can't be read, the kernel may have to enlarge the table.
    let size = (try? ProcessStatus.read(session.pid))?.descriptorTableSize ?? 0
    return size >= 64 && size < 256 ? size - 16 : 200
  }

  /// Makes the process open a userfaultfd on itself. It returns the descriptor's number in the
  /// process.
  ///
  /// - Throws: `TraceError.injected` with EPERM if the process may not open one: neither by
  ///   vm.unprivileged_userfaultfd or CAP_SYS_PTRACE, nor by the permissions of /dev/userfaultfd.
  public func openUserfault() throws(TraceError) -> Int32 {
    let flags = UInt64(O_CLOEXEC | O_NONBLOCK)
    do throws(TraceError) {
      return try moveAway(
        perform("userfaultfd", number: CLINUX_SYS_userfaultfd, arguments: [flags, 0, 0, 0, 0, 0]))
    } catch {
      guard case .injected(_, _, let code) = error, code == EPERM,
        let number = try openUserfaultDevice()
      else { throw error }
      return try moveAway(number)
    }
  }

  /// Makes the process open a userfaultfd through /dev/userfaultfd (Linux 6.1). It returns `nil` if
  /// the process may not open that.
  private func openUserfaultDevice() throws(TraceError) -> Int64? {
    guard let path = try writeToScratch("/dev/userfaultfd") else { return nil }
    let here = UInt64(bitPattern: -100)  // AT_FDCWD
    let mode = UInt64(O_RDWR | O_CLOEXEC)
    let device = try call(
      number: clinux_userfault_syscall_number(Int32(CLINUX_SYS_openat)),
      [here, path, mode, 0, 0, 0])
    if device < 0 { return nil }
    let number = try openUserfault(passed: Int32(truncatingIfNeeded: device))
    try closeDescriptor(Int32(truncatingIfNeeded: device))
    return number < 0 ? nil : number
  }

  /// Makes the process open a userfaultfd on itself through an open descriptor of
  /// /dev/userfaultfd, which it gets and closes again. It returns the descriptor's number in the
  /// process.
  ///
  /// If this process dies meanwhile, the device remains open in the other one until its recovery
  /// (`Eligibility.foreignUserfaults`), but not in programs that it executes.
  ///
  /// - Parameter passed: called while the device is open in the process.
  public func openUserfault(
    through device: Descriptor, passed: () -> Void = {}
  ) throws(TraceError) -> Int32 {
    let device = try pass(device)
    passed()
    let number = try openUserfault(passed: device)
    try closeDescriptor(device)
    return try moveAway(checked("USERFAULTFD_IOC_NEW", number))
  }

  private func openUserfault(passed device: Int32) throws(TraceError) -> Int64 {
    let new: UInt64 = 0xaa00  // USERFAULTFD_IOC_NEW
    return try call(
      number: clinux_userfault_syscall_number(Int32(CLINUX_SYS_ioctl)),
      [UInt64(device), new, UInt64(O_CLOEXEC | O_NONBLOCK), 0, 0, 0])
  }

  /// Makes the process open a userfaultfd of a kind that every user's process may open, for
  /// tracking writes. Close it before the scratch area is unmapped: the scratch area shows that the
  /// userfaultfd is Dormouse's if the daemon dies.
  func openTrackingUserfault() throws(TraceError) -> Int32 {
    let flags = UInt64(O_CLOEXEC | O_NONBLOCK) | UInt64(CLINUX_UFFD_USER_MODE_ONLY)
    return Int32(
      truncatingIfNeeded: try perform(
        "userfaultfd", number: CLINUX_SYS_userfaultfd, arguments: [flags, 0, 0, 0, 0, 0]))
  }

  /// - Parameter number: read from the process's memory, perhaps. Then it can be any number.
  public func closeDescriptor(_ number: Int32) throws(TraceError) {
    _ = try perform(
      "close", number: CLINUX_SYS_close,
      arguments: [UInt64(truncatingIfNeeded: number), 0, 0, 0, 0, 0])
  }

  func moveAway(_ number: Int64) throws(TraceError) -> Int32 {
    if number < 0 { throw .injected("fcntl", pid: session.pid, code: EBADF) }
    let duplicate = UInt64(F_DUPFD_CLOEXEC)
    let high = try call(
      number: clinux_userfault_syscall_number(Int32(CLINUX_SYS_fcntl)),
      [UInt64(number), duplicate, firstDescriptor, 0, 0, 0])
    // If the limit on descriptors is low, the descriptor keeps its number.
    guard high >= 0 else { return Int32(truncatingIfNeeded: number) }
    try closeDescriptor(Int32(truncatingIfNeeded: number))
    return Int32(truncatingIfNeeded: high)
  }

  func perform(
    _ name: String, number which: Int, arguments: [UInt64]
  ) throws(TraceError) -> Int64 {
    try checked(
      name, try call(number: clinux_userfault_syscall_number(Int32(which)), arguments))
  }

  func checked(_ name: String, _ result: Int64) throws(TraceError) -> Int64 {
    if result < 0 {
      throw .injected(name, pid: session.pid, code: Int32(truncatingIfNeeded: -result))
    }
    return result
  }
}
