import Glibc
import Hibernation
import Linux
import Policy
import Supervision

/// What the kernel knows of processes, and does with them. `KernelProcesses` is the machine; tests provide their own.
protocol Processes: Sendable {
  // MARK: children of this process

  /// Also those that have ended.
  var children: [Int32] { get }
  /// A child without an owner is being forked: it can't be distinguished from an orphan.
  var anyChildIsUnclaimed: Bool { get }
  /// It has ended, and nothing else waits for it.
  func mayBeReaped(_ pid: Int32) -> Bool
  func reap(_ pid: Int32)

  // MARK: processes without an owner

  /// Those that have become this process's children, as their parents have ended, and that run.
  func adoptedOrphans() -> [ProcessStat]
  /// Empty: it can't be read. Waits for the process's memory.
  func environment(of pid: Int32) -> [Substring]
  /// With all of its tree.
  func kill(_ stat: ProcessStat, until deadline: Deadline) throws(SystemCallError)

  /// Asks a worker's processes for memory: those that handle the signal, as it would end the others.
  ///
  /// - Parameter tree: its processes, where they are known.
  func signal(
    _ process: WorkerProcess, _ signal: Int32, ifHandledIn tree: ProcessTree?
  ) throws(ShedRefusal)

  /// The program that has held the port since before this process began, and isn't of its worker: not this process,
  /// which has the sockets of `listen`. nil: there is none, or it can't be found out.
  func holder(
    of port: UInt16, earlierThan root: ProcessIdentity, session: Int32, cgroup: WorkerCgroup?
  ) -> PortHolder?

  // MARK: what is left of earlier runs

  /// The worker's group below one of these, if some process runs in it.
  func group(of name: String, in roots: [CgroupRoot]) throws -> (path: String, pids: [Int32])?
  /// Processes that have this file as standard output or error.
  func writers(of log: String) throws -> [Int32]

  // MARK: workers that another daemon or supervisor has started

  /// Only the memory and the descriptors of this process's own children may be opened (Yama).
  var forbidsStrangers: Bool { get }
  /// Of the process that it describes.
  func life(of record: WorkerRecord, bootID: String) -> ProcessLife
  /// Lets it run with all of its memory, and returns how many bytes were restored. Waits.
  ///
  /// - Parameter recorded: as for `Hibernator.resume`.
  func recover(
    _ target: HibernationTarget, by hibernator: Hibernator, from image: String,
    expecting: ImageExpectation, recorded: () -> String?
  ) throws(HibernationError) -> UInt64
  /// SIGKILL to all of it. Waits.
  func end(_ record: WorkerRecord, _ target: HibernationTarget) throws
}

struct KernelProcesses: Processes {
  var children: [Int32] { Linux.children(of: getpid()) }

  var anyChildIsUnclaimed: Bool { ForkedChild.anyIsUnclaimed }

  func mayBeReaped(_ pid: Int32) -> Bool {
    // A child that can't be read has been waited for, or is looked at the next time.
    guard let stat = try? ProcessStat.read(pid) else { return false }
    return stat.isEnded && !ProcessRemover.shared.holds(pid)
  }

  func reap(_ pid: Int32) { _ = reapIfEnded(pid) }

  func adoptedOrphans() -> [ProcessStat] {
    // A kernel without CONFIG_PROC_CHILDREN has no such file.
    let words = (try? readText("/proc/self/task/\(getpid())/children")) ?? ""
    return words.split(separator: " ").compactMap { word in
      // It has ended.
      guard let stat = Int32(word).flatMap({ try? ProcessStat.read($0) }), !stat.isEnded else {
        return nil
      }
      return stat
    }
  }

  func environment(of pid: Int32) -> [Substring] {
    // A process that can't be read carries no mark.
    ((try? readText("/proc/\(pid)/environ")) ?? "").split(separator: "\0")
  }

  func kill(_ stat: ProcessStat, until deadline: Deadline) throws(SystemCallError) {
    // It may have ended meanwhile, and have passed on what it was at.
    let session = stat.session == getsid(0) ? nil : stat.session
    try ProcessTree.killAll(root: stat.identity, session: session, until: deadline)
  }

  func signal(
    _ process: WorkerProcess, _ signal: Int32, ifHandledIn tree: ProcessTree?
  ) throws(ShedRefusal) {
    _ = try ShedRequestRun.start(.signal(signal), worker: process, tree: tree)
  }

  func holder(
    of port: UInt16, earlierThan root: ProcessIdentity, session: Int32, cgroup: WorkerCgroup?
  ) -> PortHolder? {
    // What can't be found out doesn't delay the worker.
    let found = try? PortHolder.earlier(than: root, session: session, cgroup: cgroup, at: port)
    return found?.pid == getpid() ? nil : found
  }

  func group(of name: String, in roots: [CgroupRoot]) throws -> (path: String, pids: [Int32])? {
    for root in roots {
      do throws(CgroupError) {
        guard let group = try WorkerCgroup.find(in: root, name: name), try group.isPopulated else {
          continue
        }
        // One whose processes can't be listed has some, and names none.
        return (group.path, (try? group.processes()) ?? [])
      } catch {
        // It was removed just now.
        guard case .failed(let cause) = error, cause.code == ENODEV else { throw error }
      }
    }
    return nil
  }

  /// Without cgroups: only the worker's processes have its log. Nothing else is looked at: the memory of a
  /// sleeping worker may be missing.
  func writers(of log: String) throws -> [Int32] {
    let names = try listDirectory("/proc", onlyDirectories: true)
    return names.compactMap { Int32($0) }.filter { pid in
      pid != getpid()
        && [STDOUT_FILENO, STDERR_FILENO].contains { descriptor in
          guard let target = linkTarget("/proc/\(pid)/fd/\(descriptor)") else { return false }
          // Rotated, or removed.
          return target == log || target.hasPrefix("\(log).") || target == "\(log) (deleted)"
        }
    }
  }

  var forbidsStrangers: Bool { Yama.current.forbidsStrangers }

  func life(of record: WorkerRecord, bootID: String) -> ProcessLife { record.life(bootID: bootID) }

  func recover(
    _ target: HibernationTarget, by hibernator: Hibernator, from image: String,
    expecting: ImageExpectation, recorded: () -> String?
  ) throws(HibernationError) -> UInt64 {
    try hibernator.recover(target, from: image, expecting: expecting, recorded: recorded).restored
  }

  func end(_ record: WorkerRecord, _ target: HibernationTarget) throws {
    guard let cgroup = target.cgroup else {
      return try ProcessTree.killAll(root: record.process, session: record.session)
    }
    try cgroup.kill()
    // A group that isn't empty stays for the next daemon.
    if record.external == nil { try? cgroup.remove(until: Deadline(in: .seconds(2))) }
  }
}
