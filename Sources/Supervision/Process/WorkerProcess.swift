import CLinux
import Glibc
import Linux

/// How a worker's root process ended.
public enum WorkerExit: Hashable, Sendable {
  case exited(Int32)
  case signaled(Int32)
  /// The exit status isn't known: the process wasn't the daemon's child, so the kernel doesn't
  /// report it.
  case unknown
}

/// Returns nil while the process runs. Throws ECHILD if it isn't a child of this process.
func reapChild(_ pidfd: Descriptor, pid: Int32) throws(SystemCallError) -> WorkerExit? {
  var kind: Int32 = 0
  var status: Int32 = 0
  let ended = try shim("waitid", on: "pid \(pid)") { clinux_reap(pidfd.raw, &kind, &status) }
  if ended == 0 { return nil }
  return kind == 0 ? .exited(status) : .signaled(status)
}

/// The data that is needed to end all processes of a worker, on any thread.
public struct WorkerKilling: Sendable {
  public let root: ProcessIdentity
  public let session: Int32
  public let cgroup: WorkerCgroup?
  /// The pidfd of the root process.
  let pidfd: Descriptor

  /// Sends SIGKILL to all processes of the worker, and frees their memory at once. The call may
  /// take until the deadline.
  public func perform(until deadline: Deadline) throws(CgroupError) {
    // A process that can't be found now exits by itself.
    let tree = try? ProcessTree.discover(root: root, session: session, cgroup: cgroup)
    let memory = tree.map { MemoryRelease(of: $0, about: "\(root.pid) \(root.startTime)") }
    defer { memory?.begin() }
    try kill(until: deadline)
  }

  private func kill(until deadline: Deadline) throws(CgroupError) {
    if let cgroup {
      // After the kill, a process that is only ending would count as lost. One that has been moved
      // to another group is killed below, with what it has started there.
      let hasLostRoot = cgroup.hasLost(root)
      try cgroup.kill()
      if !hasLostRoot { return }
    }
    // One call kills the whole process group, in which no process can fork in the meantime. A child
    // of this process keeps its pid until it is reaped, so the group can't be another one.
    do throws(SystemCallError) {
      let stat = try ProcessStat.read(root.pid)
      if stat.identity == root, stat.parent == getpid(), getpgid(root.pid) == root.pid {
        sendSignal(SIGKILL, to: -root.pid)
      }
    } catch {
      // The process can't be read: no descriptor is free, or /proc hides it.
      if !error.meansVanished { _ = clinux_pidfd_send_signal(pidfd.raw, SIGKILL) }
    }
    do throws(SystemCallError) {
      try ProcessTree.killAll(root: root, session: session, until: deadline)
    } catch {
      throw .failed(error)
    }
  }
}

/// A running worker, from the kernel's point of view. It belongs to the event loop's thread.
public final class WorkerProcess {
  /// The plan of the launch, without the descriptors that the program has got.
  public let plan: LaunchPlan
  public let identity: ProcessIdentity
  /// Readable when the root process has ended; see `reap`.
  public let pidfd: Descriptor
  /// The worker's cgroup; nil if it runs outside of one.
  public let cgroup: WorkerCgroup?
  /// The reason why it runs outside the cgroup that the plan names.
  public let cgroupRefusal: SpawnError?
  /// The offset in bytes at which this launch's output begins in the log.
  public let logStart: Int64
  /// The memory of the root process (`/proc/PID/mem`), after a `refreshMemory`. It isn't opened at
  /// the launch, on the event loop: the program may execute another one at once, and the open would
  /// wait for a file system that keeps that execve.
  public var memory: Descriptor? { memoryDescriptors[identity] }
  private var memoryDescriptors: [ProcessIdentity: Descriptor] = [:]

  /// The worker's session, which its root process leads.
  public var session: Int32 { identity.pid }

  private init(
    plan: LaunchPlan, identity: ProcessIdentity, pidfd: Descriptor, cgroup: WorkerCgroup?,
    cgroupRefusal: SpawnError?, logStart: Int64
  ) {
    self.plan = plan
    self.identity = identity
    self.pidfd = pidfd
    self.cgroup = cgroup
    self.cgroupRefusal = cgroupRefusal
    self.logStart = logStart
  }

  /// A launch that has reached execve.
  convenience init(
    _ prepared: PreparedLaunch, _ process: SpawnedProcess, cgroupRefusal: SpawnError?
  ) {
    var plan = prepared.plan
    // The program has copies of them. The daemon's would stay open for the whole run, also when the
    // store has closed them, and a client would wait for the end of its connection.
    (plan.listeners, plan.stored) = ([], [])
    self.init(
      plan: plan, identity: process.identity, pidfd: process.pidfd,
      cgroup: cgroupRefusal == nil ? plan.cgroup : nil, cgroupRefusal: cgroupRefusal,
      logStart: prepared.logStart)
  }

  /// Starts a worker and waits until its program runs, at most `WorkerStart.timeout`. Don't call
  /// it on the event loop's thread.
  public static func launch(_ plan: LaunchPlan) throws(LaunchError) -> WorkerProcess {
    let start = WorkerStart(try plan.prepare().forkHere())
    let deadline = Deadline(in: WorkerStart.timeout)
    while true {
      if let process = try start.poll() { return process }
      let isDue: Bool
      do throws(SystemCallError) {
        isDue = try pollDescriptor(start.report.raw, for: POLLIN, until: deadline)
      } catch {
        start.abandon()
        throw .log(error)
      }
      if !isDue, let process = try start.expire() { return process }
    }
  }

  /// Takes over a worker that an earlier daemon started. Throws ESRCH if it has ended.
  public static func adopt(
    _ identity: ProcessIdentity, plan: LaunchPlan
  ) throws(SystemCallError) -> WorkerProcess {
    WorkerProcess(
      plan: plan, identity: identity, pidfd: try identity.openPidfd(), cgroup: plan.cgroup,
      cgroupRefusal: nil, logStart: 0)
  }

  /// Whether the root process lives. It needs no new descriptor: it polls the pidfd that is open
  /// since the launch.
  public var life: ProcessLife {
    do throws(SystemCallError) {
      return try pollDescriptor(pidfd.raw, for: POLLIN, until: Deadline(in: .zero))
        ? .hasEnded : .lives
    } catch { return .unknown(error) }
  }
  /// True if SIGKILL has reached its root process, or the process has ended.
  public var isEnding: Bool { identity.isEnding }

  /// All processes of the worker, parents before children. It is read from /proc or the cgroup.
  public func tree() throws(SystemCallError) -> ProcessTree {
    try ProcessTree.discover(root: identity, session: session, cgroup: cgroup)
  }

  /// All processes of the worker, as an earlier scan of the machine found them. In a cgroup, which
  /// is cheap to read, they are read now.
  public func tree(in scan: ProcessScan?) throws(SystemCallError) -> ProcessTree {
    guard cgroup == nil, let scan else { return try tree() }
    return scan.tree(root: identity, session: session)
  }

  /// Sends a signal to the root process. Throws ESRCH if it has ended.
  public func signal(_ number: Int32) throws(SystemCallError) {
    try shim("pidfd_send_signal", on: "pid \(identity.pid)") {
      clinux_pidfd_send_signal(pidfd.raw, number)
    }
  }

  /// Sends SIGKILL to all its processes, even if they are stopped, frozen or orphaned. It may take
  /// up to 5 s if the worker has no cgroup and forks. On the event loop's thread, use `killing`
  /// instead.
  public func killAll() throws(CgroupError) {
    try killing.perform(until: Deadline(in: .seconds(5)))
  }

  /// The data by which another thread can kill the worker.
  public var killing: WorkerKilling {
    WorkerKilling(root: identity, session: session, cgroup: cgroup, pidfd: pidfd)
  }

  /// The exit of the root process, or nil while it runs. Call it only after `pidfd` was readable:
  /// before that, waitid could steal a stop from the tracing thread.
  public func reap() throws(SystemCallError) -> WorkerExit? {
    do throws(SystemCallError) {
      return try reapChild(pidfd, pid: identity.pid)
    } catch {
      if error.code != ECHILD { throw error }
      return life == .hasEnded ? .unknown : nil
    }
  }

  /// Whether a pid is one of the worker's processes. It doesn't scan all processes.
  public func owns(_ pid: Int32) -> Bool {
    if pid == identity.pid { return life != .hasEnded }
    // A cgroup that was removed has no processes.
    if let cgroup { return (try? cgroup.processes().contains(pid)) ?? false }
    var current = pid  // A process that has ended owns nothing.
    for _ in 0..<64 where current > 1 {
      guard let stat = try? ProcessStat.read(current), stat.startTime >= identity.startTime else {
        return false
      }
      if stat.identity == identity || stat.session == session { return true }
      current = stat.parent
    }
    return false
  }
}

// MARK: - Signals that it handles

extension ProcessTree {
  /// The processes that get a signal for the whole worker: those that handle it, except for
  /// descendants of another one that does. A parent with a handler passes the signal on in its own
  /// way.
  func receiving(_ signal: Int32) throws(SystemCallError) -> ProcessTree {
    var covered: Set<Int32> = []
    var receivers: [ProcessStat] = []
    for stat in processes {
      if covered.contains(stat.parent) {
        covered.insert(stat.pid)
        continue
      }
      do throws(SystemCallError) {
        guard try ProcessStatus.read(stat.pid).catches(signal) else { continue }
        covered.insert(stat.pid)
        receivers.append(stat)
      } catch {
        if !error.meansVanished { throw error }
      }
    }
    return ProcessTree(processes: receivers)
  }
}

// MARK: - Memory descriptors

extension WorkerProcess {
  /// The open memory descriptors of live processes, by pid.
  public var memories: [Int32: Descriptor] {
    var result: [Int32: Descriptor] = [:]
    for (process, memory) in memoryDescriptors where !process.hasEnded {
      result[process.pid] = memory
    }
    return result
  }

  /// Opens the memory of all its processes again, where that is permitted. A descriptor stays with
  /// the program that ran when it was opened. So this is necessary when a worker has become ready
  /// (a wrapper may have executed the real program), and when it has more processes. Don't call it
  /// on the event loop's thread; use `memoryRefresh` there.
  public func refreshMemory() throws(SystemCallError) { store(try memoryRefresh.perform()) }

  /// The work of `refreshMemory`, for another thread. It scans all processes, and opening the
  /// memory of a process waits while the process is in execve. Pass its result to `store`.
  public var memoryRefresh: MemoryRefresh {
    MemoryRefresh(root: identity, session: session, cgroup: cgroup)
  }

  /// Stores the descriptors that `memoryRefresh` has opened.
  public func store(_ opened: MemoryRefresh.Outcome) {
    let ended = Set(memoryDescriptors.keys).subtracting(opened.present)
    for process in ended { memoryDescriptors[process] = nil }
    // If a process couldn't be opened this time, its earlier descriptor is kept.
    memoryDescriptors.merge(opened.memories) { $1 }
  }
}
