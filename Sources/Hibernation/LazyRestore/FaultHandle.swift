import CLinux
import Glibc
import Linux

/// The daemon's descriptors for a process that can be restored lazily. The process has both too,
/// the journal's only for reading.
struct FaultHandle: Sendable {
  let userfault: Userfault
  let journal: FaultJournal
}

extension FaultHandle {
  /// Gets an earlier daemon's descriptors from the process. Returns `nil` if the process has none.
  /// A journal of an earlier version, which the worker can write to, counts as none.
  ///
  /// - Throws: `FaultJournal.Damaged` if its journal can't be used, or a `SystemCallError` if that
  ///   can't be found out now.
  static func find(in process: ProcessIdentity) throws -> FaultHandle? {
    for (file, header) in try FaultJournal.all(in: process.pid)
    where header.isTrusted && header.process == process {
      guard let userfault = try Userfault.find(header.userfault, of: process),
        clinux_inode(userfault.raw) == header.inode
      else { continue }
      var handle = Userfault(descriptor: userfault, pid: process.pid)
      try handle.adopt()
      return FaultHandle(
        userfault: handle,
        journal: try .adopt(file))
    }
    return nil
  }

  /// Makes a process open a userfaultfd, on the thread that is borrowed for the hibernation, and
  /// gives it a descriptor of its journal. If this throws, the process has neither.
  static func inject(
    _ injector: Injector, into process: ProcessIdentity, features: KernelFeatures
  ) throws -> FaultHandle {
    let number = try openUserfault(injector, in: process, features: features)
    var opened = [number]
    do {
      let descriptor = try Userfault.duplicate(number, of: process.pid)
      var userfault = Userfault(descriptor: descriptor, pid: process.pid)
      FaultPoint.userfaultOpened.pass()
      let journal = try FaultJournal.create(
        of: process, userfault: number, inode: clinux_inode(descriptor.raw))
      let journalNumber = try injector.pass(try journal.readOnly())
      opened.append(journalNumber)
      guard clinux_inode_at("/proc/\(process.pid)/fd/\(journalNumber)") == journal.inode else {
        throw SystemCallError("recvmsg", on: "pid \(process.pid): another file", code: EBADF)
      }
      // This step is last: if the daemon dies before it, the userfaultfd isn't mistaken for one
      // that the program uses.
      try userfault.negotiate(tracksWrites: features.writeTracking)
      return FaultHandle(userfault: userfault, journal: journal)
    } catch {
      for number in opened { try injector.closeDescriptor(number) }
      throw error
    }
  }

  private static func openUserfault(
    _ injector: Injector, in process: ProcessIdentity, features: KernelFeatures
  ) throws -> Int32 {
    do throws(TraceError) { return try injector.openUserfault() } catch {
      guard case .injected(_, _, let code) = error, code == EPERM, features.needsUserfaultService,
        UserNamespace.isShared(with: process.pid)
      else { throw error }
    }
    let device = try UserfaultService.openDevice()
    return try injector.openUserfault(through: device) { FaultPoint.devicePassed.pass() }
  }

  /// Returns the reason why a process must not be given a journal, or `nil` if it may have one.
  ///
  /// A process that could open the journal for writing, by its user or its capabilities, must have
  /// all rights of the daemon anyway. Root in a container has the daemon's user id, and fewer
  /// rights.
  static func obstacle(of process: Int32) throws(SystemCallError) -> String? {
    let (worker, daemon) = (try ProcessStatus.read(process), try ProcessStatus.read(getpid()))
    return obstacle(worker, daemon: daemon)
  }

  static func obstacle(_ worker: ProcessStatus, daemon: ProcessStatus) -> String? {
    let overrides: UInt64 = 1 << 1  // CAP_DAC_OVERRIDE
    guard worker.user == daemon.user || worker.effectiveCapabilities & overrides != 0,
      daemon.effectiveCapabilities & ~worker.effectiveCapabilities != 0
    else { return nil }
    return
      "it runs as the daemon's user with fewer rights (a container, dropped capabilities), and "
      + "could change the daemon's journal of missing pages"
  }
}
