import CLinux
import Glibc
import Linux

/// Finds processes that can't be hibernated: those whose pages the kernel or a device may write
/// without notice, and those whose memory may not be moved. The check comes before anything is
/// changed.
enum Eligibility {
  /// Checks what can be seen from outside, while the worker still runs. A process that ends
  /// meanwhile is no obstacle: a server may have children that live for milliseconds.
  static func check(processes: [ProcessStat]) throws(HibernationError) {
    for process in processes {
      do throws(HibernationError) {
        try checkUse(by: process, try checkStatus(process))
      } catch { if !process.identity.hasEnded { throw error } }
    }
  }

  /// Checks again what processes can have changed while they ran. This thread traces them.
  static func checkUse(by processes: [ProcessStat]) throws(HibernationError) {
    for process in processes {
      let status = try inspect { () throws(SystemCallError) in
        try ProcessStatus.read(process.pid)
      }
      if let status { try checkUse(by: process, status) }
    }
  }

  private static func checkUse(
    by process: ProcessStat, _ status: ProcessStatus
  ) throws(HibernationError) {
    try checkArchitecture(process)
    try checkDescriptors(process)
    try checkPins(process, status)
  }

  private static func checkStatus(
    _ process: ProcessStat
  ) throws(HibernationError) -> ProcessStatus {
    let status: ProcessStatus
    do throws(SystemCallError) {
      status = try ProcessStatus.read(process.pid)
    } catch { throw .from(error, in: .checking) }
    if Stragglers.shared.owns(tracer: status.tracer) {
      throw refusal(
        process,
        "is still being released from an earlier attempt to hibernate it: one of its threads is "
          + "in uninterruptible sleep (in vfork, for example)", aftermath: .intact)
    }
    try checkTracing(process)
    if status.tracer != 0 {
      throw refusal(
        process, "is traced by process \(status.tracer) (a debugger?)", aftermath: .intact)
    }
    if status.lockedBytes > 0 {
      let maps = try inspect { () throws(SystemCallError) in
        try readText("/proc/\(process.pid)/maps")
      }
      if let maps, maps.contains(" /secretmem") { throw refusal(process, secretMemory) }
      throw refusal(process, "has \(status.lockedBytes / 1024) KB of locked memory (mlock)")
    }
    return status
  }

  /// - Parameter aftermath: of a process that may not be traced. A child may soon end.
  static func checkTracing(
    _ process: ProcessStat, aftermath: HibernationError.Aftermath = .ineligible
  ) throws(HibernationError) {
    if Yama.current.permits(process.pid) || process.identity.hasEnded { return }
    throw refusal(
      process,
      "is not a descendant of the daemon, and kernel.yama.ptrace_scope forbids tracing it: "
        + "restart the worker", aftermath: aftermath)
  }

  private static let secretMemory = "has secret memory (memfd_secret)"

  /// Finds registered buffers of a ring that isn't among the process's descriptors any more, and
  /// pages that devices use. The kernel or device that has pinned a page writes to that page, even
  /// if the process has another page there later.
  private static func checkPins(
    _ process: ProcessStat, _ status: ProcessStatus
  ) throws(HibernationError) {
    if status.pinnedBytes == 0 { return }
    throw refusal(
      process,
      "has \(status.pinnedBytes / 1024) KB pinned by the kernel or a device "
        + "(io_uring buffers, RDMA)",
      aftermath: .intact)
  }

  /// Checks the vector that the kernel has passed to the program. The program's file isn't read:
  /// a frozen process of the worker itself may serve its file system (an AppImage).
  static func checkArchitecture(_ process: ProcessStat) throws(HibernationError) {
    let path = "/proc/\(process.pid)/auxv"
    let vector = try inspect { () throws(SystemCallError) in try readFile(path) }
    if let vector, is64Bit(auxv: vector) == false { throw refusal(process, "is a 32-bit program") }
  }

  /// Whether the program's headers (AT_PHENT, 4) have the size that they have in a 64-bit program.
  /// It is nil for a vector without entries or without its end (AT_NULL, 0): the process has ended,
  /// or is about to execute a program.
  static func is64Bit(auxv bytes: [UInt8]) -> Bool? {
    bytes.withUnsafeBytes { bytes -> Bool? in
      for offset in stride(from: 0, to: bytes.count / 16 * 16, by: 16) {
        let type = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        let value = bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
        if type == 4 { return value == 56 }
        if type == 0 { return offset == 0 ? nil : false }
      }
      return nil
    }
  }

  private static let userfaultDevice = "/dev/userfaultfd"

  /// Returns the descriptors of userfaultfds that no journal of Dormouse names, and those of
  /// /dev/userfaultfd. A process that has ended has none.
  static func foreignUserfaults(of pid: Int32) throws(SystemCallError) -> [Int32] {
    let directory = "/proc/\(pid)/fd"
    let ours = try FaultJournal.all(in: pid).map(\.header)
    let names: [String]
    do throws(SystemCallError) { names = try listDirectory(directory) } catch {
      if error.unlessHidden(pid).meansVanished { return [] }
      throw error
    }
    return names.compactMap(Int32.init).filter { number in
      let path = "\(directory)/\(number)"
      let target = readLink(path)
      if target == userfaultDevice { return true }
      guard target == "anon_inode:[userfaultfd]" else { return false }
      let inode = clinux_inode_at(path)
      return !ours.contains { $0.userfault == number && $0.inode == inode }
    }
  }

  /// Reads something of a process. It is `nil` if that has ended, was closed or may not be read:
  /// the following steps notice that. What can't be read only now isn't known to be harmless, so
  /// the worker isn't hibernated now.
  static func inspect<Value>(
    _ read: () throws(SystemCallError) -> Value
  ) throws(HibernationError) -> Value? {
    do throws(SystemCallError) { return try readIfPossible(read) } catch {
      throw .from(error, in: .checking)
    }
  }

  private static func fileInfo(
    _ descriptor: String, of process: ProcessStat
  ) throws(HibernationError) -> String {
    try inspect { () throws(SystemCallError) in
      try readText("/proc/\(process.pid)/fdinfo/\(descriptor)")
    } ?? ""
  }

  private static func checkDescriptors(_ process: ProcessStat) throws(HibernationError) {
    let directory = "/proc/\(process.pid)/fd"
    let names = try inspect { () throws(SystemCallError) in try listDirectory(directory) } ?? []
    var ours: [FaultJournal.Header]?
    for name in names {
      guard let target = readLink("\(directory)/\(name)") else { continue }
      if target == ringName {
        let info = try fileInfo(name, of: process)
        if let reason = ringObstacle(info) { throw refusal(process, reason, aftermath: .intact) }
      } else if target.hasPrefix("/dev/infiniband/") {
        throw refusal(process, "uses RDMA (\(target))")
      } else if target == userfaultDevice {
        // A recovery closes it, because it may be Dormouse's.
        throw refusal(process, "has \(target) open, so it may handle its own page faults")
      } else if target == "anon_inode:[userfaultfd]" {
        // A userfaultfd of Dormouse stays after a lazy restore.
        let number = Int32(name) ?? -1
        let inode = clinux_inode_at("\(directory)/\(name)")
        if ours == nil {
          ours = try inspect { () throws(SystemCallError) in
            try FaultJournal.all(in: process.pid).map(\.header)
          }
        }
        if ours?.contains(where: { $0.userfault == number && $0.inode == inode }) == true {
          continue
        }
        // It may be opened and not used: by a daemon that died then, or by a program that checked
        // whether it may.
        let info = try fileInfo(name, of: process)
        if !userfaultIsInUse(info) { continue }
        throw refusal(process, "handles its own page faults (userfaultfd)")
      }
    }
  }

  /// True if a userfaultfd is in use, by its fdinfo. Before UFFDIO_API a userfaultfd can't do
  /// anything. `API:` has the version, the features in use, and the available features; a
  /// userfaultfd in use always has a feature bit set.
  static func userfaultIsInUse(_ info: String) -> Bool {
    guard let line = info.split(separator: "\n").first(where: { $0.hasPrefix("API:") }) else {
      return true
    }
    let fields = line.dropFirst(4).split(separator: ":")
    return fields.count < 2 || fields[1] != "0"
  }

  /// Checks the mappings of a process, which is stopped by now.
  ///
  /// - Parameters:
  ///   - isTrimmed: true if a userfaultfd of Dormouse's has registered its memory.
  ///   - isOfTrimmed: true for every process of a trimmed worker. One that was just forked may be
  ///     registered for a moment longer: a program that another thread of the daemon is starting
  ///     has all descriptors until its exec.
  static func check(
    mappings: [MemoryMapping], of process: ProcessStat, tracker: WriteTracker? = nil,
    isTrimmed: Bool = false, isOfTrimmed: Bool = false
  ) throws(HibernationError) {
    try checkRings(mappings, of: process)
    for mapping in mappings {
      if isDevice(mapping) {
        throw refusal(process, "maps a device (\(mapping.name)), which may write to its memory")
      }
      if mapping.flags.contains(.hugetlb) { throw refusal(process, "uses huge pages (hugetlbfs)") }
      if mapping.flags.contains(.tagged) {
        throw refusal(process, "has memory with tags (MTE), which would be lost")
      }
      if mapping.flags.contains(.locked) { throw refusal(process, "has locked memory (mlock)") }
      let isWatchedByAnother = mapping.flags.contains(.writesWatched) && !watches(tracker, mapping)
      if !isTrimmed, mapping.flags.contains(.userfault) || isWatchedByAnother {
        throw refusal(
          process, "handles its own page faults (userfaultfd)",
          aftermath: isOfTrimmed ? .intact : .ineligible)
      }
      if mapping.name.hasPrefix("/secretmem") { throw refusal(process, secretMemory) }
      if mapping.name.hasPrefix("/[aio]") {
        throw refusal(process, "uses asynchronous I/O (io_submit)")
      }
    }
  }

  /// True if Dormouse's own tracker watches the writes: the kernel would refuse it a mapping that
  /// another userfaultfd has registered.
  private static func watches(_ tracker: WriteTracker?, _ mapping: MemoryMapping) -> Bool {
    guard let tracker else { return false }
    do throws(SystemCallError) {
      try tracker.register(mapping.range)
      return true
    } catch { return false }
  }

  /// True for a mapping of a device. The kernel's own mappings ([vvar], a ring of
  /// perf_event_open(2)) aren't below these directories.
  private static func isDevice(_ mapping: MemoryMapping) -> Bool {
    !mapping.flags.isDisjoint(with: [.deviceMemory, .pureFrames])
      && (mapping.name.hasPrefix("/dev/") || mapping.name.hasPrefix("/sys/"))
  }

  /// Checks that calls may be injected, and suspends seccomp: filters see injected calls too, and
  /// may kill the process for them.
  static func checkInjection(into session: TraceSession) throws(HibernationError) {
    let status = try inspect { () throws(SystemCallError) in try ProcessStatus.read(session.pid) }
    guard let status, status.seccomp != 0 else { return }
    do throws(SystemCallError) {
      try session.suspendSeccomp()
    } catch {
      if error.meansVanished { throw .from(error, in: .checking) }
      throw HibernationError(
        .checking,
        "process \(session.pid) has a seccomp filter, and suspending that needs CAP_SYS_ADMIN "
          + "(and CONFIG_CHECKPOINT_RESTORE)", aftermath: .ineligible)
    }
  }

  static func refusal(
    _ process: ProcessStat, _ reason: String,
    aftermath: HibernationError.Aftermath = .ineligible
  ) -> HibernationError {
    HibernationError(
      .checking, "process \(process.pid) (\(process.name)) \(reason)", aftermath: aftermath)
  }
}
