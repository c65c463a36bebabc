import Glibc
import Hibernation
import Linux
import Supervision

/// What the daemon needs to know about processes, and what it does with them. `KernelProcesses` is
/// the real implementation; tests have fakes.
protocol Processes: Sendable {
  // MARK: children of this process

  /// The pids of all children, including those that have ended.
  var children: [Int32] { get }
  /// A child that has no owner yet is being forked. It can't be distinguished from an orphan.
  var anyChildIsUnclaimed: Bool { get }
  /// Reaps a child, if it has ended and nothing else waits for it.
  func reapIfUnclaimed(_ pid: Int32)

  // MARK: processes without an owner

  /// Children whose own parents have ended, and that still run.
  func adoptedOrphans() -> [ProcessStat]
  /// The environment of a process; empty if it can't be read. Waits for the process's memory.
  func environment(of pid: Int32) -> [Substring]
  /// Kills the process and all of its tree.
  func kill(_ stat: ProcessStat, until deadline: Deadline) throws(SystemCallError)

  /// Asks a worker for memory by a signal. Only processes that handle the signal get it, because it
  /// would end the others.
  ///
  /// - Parameter tree: the worker's processes, if they are known.
  func signal(
    _ process: WorkerProcess, _ signal: Int32, ifHandledIn tree: ProcessTree?
  ) throws(ShedRefusal)

  /// Returns the program that has had the port open since before the process `root` began, and
  /// doesn't belong to its worker. This process isn't meant, although it has the sockets of
  /// `listen`. nil: there is no such program, or it can't be determined.
  func holder(
    of port: UInt16, earlierThan root: ProcessIdentity, session: Int32, cgroup: WorkerCgroup?
  ) -> PortHolder?

  // MARK: processes of earlier runs

  /// Returns the worker's cgroup below one of these roots, if some process runs in it.
  func group(of name: String, in roots: [CgroupRoot]) throws -> (path: String, pids: [Int32])?
  /// Returns the pids of processes that have this file as standard output or standard error.
  func writers(of log: String) throws -> [Int32]

  // MARK: workers that another daemon or supervisor has started

  /// Yama permits this process to open the memory and the descriptors of its own children, and of
  /// processes that permit it, only.
  var forbidsStrangers: Bool { get }
  /// Whether the process of the record still runs.
  func life(of record: WorkerRecord, bootID: String) -> ProcessLife
  /// Restores the worker's memory and lets it run. Returns the number of bytes that were restored.
  /// Waits.
  ///
  /// - Parameter recorded: as for `Hibernator.resume`.
  func recover(
    _ target: HibernationTarget, by hibernator: Hibernator, from image: String,
    expecting: ImageExpectation, recorded: () -> String?
  ) throws(HibernationError) -> UInt64
  /// Sends SIGKILL to all processes of the worker. Waits.
  func end(_ record: WorkerRecord, _ target: HibernationTarget) throws
}

struct KernelProcesses: Processes {
  var children: [Int32] { Linux.children(of: getpid()) }

  var anyChildIsUnclaimed: Bool { ForkedChild.anyIsUnclaimed }

  func reapIfUnclaimed(_ pid: Int32) {
    // A child that can't be read has been waited for, or is checked the next time.
    guard let stat = try? ProcessStat.read(pid), stat.isEnded else { return }
    if !ProcessRemover.shared.isRemoving(pid) { _ = reapIfEnded(pid) }
  }

  func adoptedOrphans() -> [ProcessStat] {
    // A kernel without CONFIG_PROC_CHILDREN has no such file.
    let text = (try? readText("/proc/self/task/\(getpid())/children")) ?? ""
    return text.split(separator: " ").compactMap { word in
      // A child that has ended needs no end.
      Int32(word).flatMap { try? ProcessStat.read($0) }.flatMap { $0.isEnded ? nil : $0 }
    }
  }

  func environment(of pid: Int32) -> [Substring] {
    // A process that can't be read counts as one without a mark.
    ((try? readText("/proc/\(pid)/environ")) ?? "").split(separator: "\0")
  }

  func kill(_ stat: ProcessStat, until deadline: Deadline) throws(SystemCallError) {
    // A process in the daemon's own session may have ended meanwhile, so its session isn't used to
    // find others.
    let session = stat.session == getsid(0) ? nil : stat.session
    try ProcessTree.killAll(root: stat.identity, session: session, until: deadline)
  }

  func signal(
    _ process: WorkerProcess, _ signal: Int32, ifHandledIn tree: ProcessTree?
  ) throws(ShedRefusal) {
    try process.requestMemory(by: signal, in: tree)
  }

  func holder(
    of port: UInt16, earlierThan root: ProcessIdentity, session: Int32, cgroup: WorkerCgroup?
  ) -> PortHolder? {
    // A holder that can't be determined doesn't delay the worker.
    let holder = try? PortHolder.earlier(than: root, session: session, cgroup: cgroup, at: port)
    return holder?.pid == getpid() ? nil : holder
  }

  func group(of name: String, in roots: [CgroupRoot]) throws -> (path: String, pids: [Int32])? {
    for root in roots {
      do throws(CgroupError) {
        guard let group = try WorkerCgroup.find(in: root, name: name), try group.isPopulated else {
          continue
        }
        // A cgroup whose processes can't be listed has some, but they aren't known.
        return (group.path, (try? group.processes()) ?? [])
      } catch {
        // The cgroup was removed just now.
        guard case .failed(let cause) = error, cause.code == ENODEV else { throw error }
      }
    }
    return nil
  }

  /// Finds processes without cgroups: only a worker's processes have its log open. Nothing else of
  /// a process is read, since the memory of a sleeping worker may be missing.
  func writers(of log: String) throws -> [Int32] {
    let names = try listDirectory("/proc", onlyDirectories: true)
    return names.compactMap { Int32($0) }.filter { pid in
      pid != getpid()
        && [STDOUT_FILENO, STDERR_FILENO].contains { descriptor in
          guard let target = readLink("/proc/\(pid)/fd/\(descriptor)") else { return false }
          // The log may have been rotated or removed.
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
    let hasLostRoot = target.cgroup?.hasLost(record.process) ?? true
    try target.cgroup?.kill()
    if hasLostRoot { try ProcessTree.killAll(root: record.process, session: record.session) }
    // A cgroup that isn't empty stays for the next daemon.
    if record.external == nil { try? target.cgroup?.remove(until: Deadline(in: .seconds(2))) }
  }
}
