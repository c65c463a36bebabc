import CLinux
import Glibc
import Linux

/// The daemon's descriptors for a process that can be restored lazily. The process holds both descriptors
/// too.
struct FaultHandle: Sendable {
  let userfault: Userfault
  let journal: FaultJournal
}

extension FaultHandle {
  /// Takes over an earlier daemon's descriptors; `nil` if the process has none.
  static func find(in process: ProcessIdentity) throws(SystemCallError) -> FaultHandle? {
    for (file, header) in FaultJournal.all(in: process.pid) where header.process == process {
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

  /// Makes a process open both descriptors, on the thread that is borrowed for the hibernation.
  static func inject(
    _ injector: Injector, into process: ProcessIdentity, tracksWrites: Bool
  ) throws -> FaultHandle {
    let number = try injector.openUserfault()
    do {
      let descriptor = try Userfault.duplicate(number, of: process.pid)
      var userfault = Userfault(descriptor: descriptor, pid: process.pid)
      FaultPoint.userfaultOpened.pass()
      let file = try injector.createMemoryFile(FaultJournal.name)
      let journal = try FaultJournal.create(
        in: try Userfault.duplicate(file, of: process.pid), of: process, userfault: number,
        inode: clinux_inode(descriptor.raw))
      // This step is last: if the daemon dies before it, the userfaultfd isn't mistaken for one that the
      // program uses.
      try userfault.negotiate(tracksWrites: tracksWrites)
      return FaultHandle(userfault: userfault, journal: journal)
    } catch {
      try injector.closeDescriptor(number)
      throw error
    }
  }
}
