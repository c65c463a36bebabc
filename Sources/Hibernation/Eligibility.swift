import CLinux
import Glibc
import Linux

/// Who can't be hibernated: processes whose pages the kernel or a device may write behind our back,
/// and those whose memory we may not move. Told before anything is touched.
enum Eligibility {
  /// What can be seen from outside, while the worker still runs.
  static func check(processes: [ProcessStat]) throws(HibernationError) {
    for process in processes {
      try checkStatus(process)
      try checkArchitecture(process)
      try checkDescriptors(process)
    }
    try checkSharedMemoryMaps(processes)
  }

  private static func checkStatus(_ process: ProcessStat) throws(HibernationError) {
    let status: ProcessStatus
    do throws(SystemCallError) {
      status = try ProcessStatus.read(process.pid)
    } catch { throw .from(error, in: .checking) }
    if status.tracer != 0 {
      throw refuse(process, "is traced by process \(status.tracer) (a debugger?)", .intact)
    }
    if status.lockedBytes > 0 {
      throw refuse(process, "has \(status.lockedBytes / 1024) KB of locked memory (mlock)")
    }
  }

  /// ELFCLASS32 in the header of what it runs.
  private static func checkArchitecture(_ process: ProcessStat) throws(HibernationError) {
    let path = "/proc/\(process.pid)/exe"
    guard let file = try? Descriptor.open(path), let head = try? file.read(upTo: 5) else { return }
    if head.count == 5, head[4] == 1 { throw refuse(process, "is a 32-bit program") }
  }

  private static func checkDescriptors(_ process: ProcessStat) throws(HibernationError) {
    let directory = "/proc/\(process.pid)/fd"
    guard let names = try? listDirectory(directory) else { return }
    var ours: [FaultJournal.Header]?
    for name in names {
      guard let target = readLink("\(directory)/\(name)") else { continue }
      if target == "anon_inode:[io_uring]" {
        let info = (try? readText("/proc/\(process.pid)/fdinfo/\(name)")) ?? ""
        if let why = ringIsInUse(info) { throw refuse(process, why, .intact) }
      } else if target.hasPrefix("/dev/infiniband/") {
        throw refuse(process, "uses RDMA (\(target))")
      } else if target == "anon_inode:[userfaultfd]" {
        // One of ours is left behind by a resume with missing pages.
        let number = Int32(name) ?? -1
        let inode = clinux_inode_at("\(directory)/\(name)")
        ours = ours ?? FaultJournal.all(in: process.pid).map(\.header)
        if ours?.contains(where: { $0.userfault == number && $0.inode == inode }) == true {
          continue
        }
        // Opened, and nothing else: by a daemon of ours that died then, or a program that has looked
        // whether it may.
        let info = (try? readText("/proc/\(process.pid)/fdinfo/\(name)")) ?? ""
        if !userfaultIsInUse(info) { continue }
        throw refuse(process, "handles its own page faults (userfaultfd)")
      }
    }
  }

  /// Before UFFDIO_API a userfaultfd can't do anything. `API:` has version, features in use, and
  /// features that there are; one in use always has a bit set.
  static func userfaultIsInUse(_ info: String) -> Bool {
    guard let line = info.split(separator: "\n").first(where: { $0.hasPrefix("API:") }) else {
      return true
    }
    let words = line.dropFirst(4).split(separator: ":")
    return words.count < 2 || words[1] != "0"
  }

  /// What speaks against moving the pages of a process with this ring, from its fdinfo. A kernel
  /// that doesn't tell enough counts against it: data would be lost silently.
  static func ringIsInUse(_ info: String) -> String? {
    var fields: [Substring: Int] = [:]
    var pollEntries = 0
    var inPollList = false
    for line in info.split(separator: "\n") {
      if inPollList, line.hasPrefix(" ") { pollEntries += 1 }
      guard let colon = line.firstIndex(of: ":"), !line.hasPrefix(" ") else { continue }
      inPollList = line[..<colon] == "PollList"
      fields[line[..<colon]] = Int(
        line[line.index(after: colon)...].drop { $0 == "\t" || $0 == " " })
    }
    guard let buffers = fields["UserBufs"], let submitted = fields["SqTail"],
      let taken = fields["SqHead"], let completed = fields["CqTail"], let seen = fields["CqHead"]
    else { return "uses io_uring, and this kernel doesn't tell what for" }
    if buffers > 0 { return "has \(buffers) io_uring buffers registered with the kernel" }
    if submitted != taken || completed != seen || pollEntries > 0 {
      return "has io_uring requests in flight"
    }
    return nil
  }

  /// Two processes with one address space (between vfork and exec, or clone(CLONE_VM)).
  private static func checkSharedMemoryMaps(
    _ processes: [ProcessStat]
  ) throws(HibernationError) {
    let present = Set(processes.map(\.pid))
    for process in processes where present.contains(process.parent) {
      if clinux_share_memory(process.pid, process.parent) == 1 {
        throw refuse(process, "shares its memory with process \(process.parent)", .intact)
      }
    }
  }

  /// What only the mappings tell; the process is stopped by now.
  static func check(
    mappings: [MemoryMapping], of process: ProcessStat
  ) throws(HibernationError) {
    for mapping in mappings {
      if mapping.flags.contains(.hugetlb) { throw refuse(process, "uses huge pages (hugetlbfs)") }
      if mapping.flags.contains(.locked) { throw refuse(process, "has locked memory (mlock)") }
      if mapping.flags.contains(.userfault) {
        throw refuse(process, "handles its own page faults (userfaultfd)")
      }
      if mapping.name.hasPrefix("/secretmem") { throw refuse(process, "has secret memory") }
      if mapping.name.hasPrefix("/[aio]") {
        throw refuse(process, "uses asynchronous I/O (io_submit)")
      }
    }
  }

  /// Seccomp filters see injected calls too, and may kill for them.
  static func mayInject(into session: TraceSession) throws(HibernationError) {
    guard let status = try? ProcessStatus.read(session.pid), status.seccomp != 0 else { return }
    do throws(SystemCallError) {
      try session.suspendSeccomp()
    } catch {
      if error.meansVanished { throw .from(error, in: .checking) }
      throw HibernationError(
        .checking,
        "process \(session.pid) has a seccomp filter, and suspending that needs CAP_SYS_ADMIN "
          + "(and CONFIG_CHECKPOINT_RESTORE)", .ineligible)
    }
  }

  private static func refuse(
    _ process: ProcessStat, _ why: String,
    _ aftermath: HibernationError.Aftermath = .ineligible
  ) -> HibernationError {
    HibernationError(.checking, "process \(process.pid) (\(process.name)) \(why)", aftermath)
  }
}
