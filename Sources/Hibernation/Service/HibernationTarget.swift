import CLinux
import Glibc
import Linux

/// One worker, as the hibernator needs it.
public struct HibernationTarget: Sendable {
  /// The worker's name, by which a hibernator keeps state between calls.
  public var name: String
  /// The worker's first process.
  public var root: ProcessIdentity
  /// The worker's own session, if it was started in one.
  public var session: Int32?
  /// The worker's cgroup, which says which processes belong to it. In a group made by Dormouse it
  /// rests frozen. Without a group, or in a group that another program manages, it rests stopped,
  /// traced and parked (`Parking`): a foreign SIGCONT must not let it run without its memory.
  public var cgroup: WorkerCgroup?
  /// Descriptors of /proc/PID/mem by pid, open since the launch.
  public var memories: [Int32: Descriptor]
  /// The timeouts of the worker's threads, kept over its sleeps.
  public var waits: TimedWaits
  /// The worker's masters, if it is a prefork server, kept over its sleeps.
  public var masters: PreforkMasters
  /// The processes that fell asleep with an adopted one. If that has ended, they have other
  /// parents, and only this list names them.
  public var sleepers: [ProcessIdentity]

  public init(
    name: String, root: ProcessIdentity, session: Int32? = nil, cgroup: WorkerCgroup? = nil,
    memories: [Int32: Descriptor] = [:], waits: TimedWaits = TimedWaits(),
    masters: PreforkMasters = PreforkMasters(), sleepers: [ProcessIdentity] = []
  ) {
    self.name = name
    self.root = root
    self.session = session
    self.cgroup = cgroup
    self.memories = memories
    self.waits = waits
    self.masters = masters
    self.sleepers = sleepers
  }

  /// The greatest time for a freeze, a thaw or a stop to take effect.
  static let timeout: Duration = .seconds(5)

  func discover() throws -> ProcessTree {
    var tree = try ProcessTree.discover(root: root, session: session, cgroup: cgroup)
    if cgroup != nil || tree.contains(root.pid) { return tree }
    for process in sleepers where !tree.contains(process.pid) {
      do throws(SystemCallError) {
        let stat = try ProcessStat.read(process.pid)
        if stat.identity == process, !stat.isEnded { tree.processes.append(stat) }
      } catch {
        if !error.meansVanished { throw error }
      }
    }
    return tree
  }

  /// Opens the memory of a process, with a fresh descriptor if that is permitted: a descriptor that
  /// was opened before the process's last exec refers to memory that no longer exists.
  func memory(of process: ProcessIdentity) throws(SystemCallError) -> ProcessMemory {
    do throws(SystemCallError) { return try ProcessMemory(of: process) } catch {
      // While descriptors are short, the old one is no substitute: writing to the old memory fails,
      // as if the new one were lost.
      if let earlier = memories[process.pid], !error.meansVanished, !error.isShortage {
        return ProcessMemory(pid: process.pid, descriptor: earlier)
      }
      throw error
    }
  }

  /// Returns true if the freezer keeps the worker at rest. A group in which a process is being
  /// killed isn't frozen for a moment, although no process has thawed it.
  func isFrozen() throws -> Bool {
    guard let cgroup = cgroup?.freezer else { return false }
    let deadline = Deadline(in: .seconds(1))
    while try !cgroup.isFrozen {
      let wanted = try readText("\(cgroup.path)/cgroup.freeze")
      if !wanted.hasPrefix("1") || deadline.hasPassed { return false }
      if try discover().isEmpty { return false }
      pauseThread(for: .milliseconds(1))
    }
    return true
  }

  /// Returns true if a process of the worker is left after one has ended. It waits up to 0.5 s for
  /// processes that are just ending.
  func hasSurvivors() -> Bool {
    let deadline = Deadline(in: .milliseconds(500))
    while hasLivingProcess {
      if deadline.hasPassed { return true }
      pauseThread(for: .milliseconds(2))
    }
    return false
  }

  /// True unless all processes of the worker are known to have ended.
  var hasLivingProcess: Bool {
    // While the processes can't be listed, they may live.
    guard let tree = try? discover() else { return true }
    if cgroup?.hasLost(root) == true { return true }
    return tree.pids.contains { Self.lifeOfMemory($0) != .hasEnded }
  }

  /// Returns whether the process that has this pid still has memory: a process that is being killed
  /// loses its memory first.
  static func lifeOfMemory(_ pid: Int32) -> ProcessLife {
    do throws(SystemCallError) {
      return try ProcessStatus.read(pid).hasMemory ? .lives : .hasEnded
    } catch { return error.meansVanished ? .hasEnded : .unknown(error) }
  }

  /// Sends SIGSTOP to all processes and waits until all threads are stopped. A frozen worker is
  /// stopped first and then thawed, so that it runs no instruction in between.
  ///
  /// - Parameter listed: the worker's processes, if they have been listed since it was suspended.
  func stop(_ listed: ProcessTree?, until deadline: Deadline) throws -> ProcessTree {
    var current = listed
    var wasFrozen = false
    if let cgroup = cgroup?.freezer, try cgroup.isFrozen {
      let tree = try listed ?? discover()
      if let traced = tree.tracedByOthers { throw ProcessTreeError.traced(pid: traced) }
      try tree.signalAll(SIGSTOP)
      try cgroup.thaw(until: Deadline(in: Self.timeout))
      current = tree
      wasFrozen = true
    }
    return try ProcessTree.stopAll(
      root: root, session: session, cgroup: cgroup, initial: current,
      wasFrozen: wasFrozen, until: deadline)
  }

  /// Restarts calls that a stop or a freeze interrupted. Call it before a worker that was only
  /// stopped or frozen runs again. Its memory was never touched, but some of its calls would return
  /// EINTR because of the stop, and others would wait for their whole time again. If tracing is
  /// permitted, this function prevents both. Call it on any thread that isn't tracing the worker;
  /// it takes a few hundred microseconds.
  ///
  /// Afterwards no thread of the worker is traced, even after an error. A thread inside vfork(2)
  /// counts as frozen and can't stop, so it is skipped. (A stop doesn't interrupt vfork.)
  ///
  /// - Returns: the worker's processes, for `wake`, or `nil` if they couldn't be listed.
  @discardableResult
  public func restartInterruptedSyscalls() -> ProcessTree? {
    // If that isn't known, calls may return EINTR.
    let isFrozen = (try? isFrozen()) ?? false
    // `wake` then lists the processes itself, and reports why it can't.
    guard let tree = try? discover() else { return nil }
    waits.willWake(tree)
    let processes = tree.processes.filter { isFrozen || Self.isStopped($0.identity) }
    if processes.isEmpty { return tree }
    BriefTracer.perform {
      // If a call isn't restarted, the program sees an EINTR; a wake that hangs is worse.
      let deadline = Deadline(in: .seconds(1))
      for stat in processes {
        let session = TraceSession.seizeWhatCanStop(stat.identity, until: deadline)
        try? session?.restartInterruptedSyscalls()  // A failure costs at most an EINTR.
        if let session { correctTimeouts(session) }
        session?.detach(waiting: .zero)
      }
    }
    return tree
  }

  private static func isStopped(_ process: ProcessIdentity) -> Bool {
    do throws(SystemCallError) {
      let stat = try ProcessStat.read(process.pid)
      return stat.identity == process && stat.state == .stopped
    } catch { return false }
  }

  /// Waits until the processes are stopped. When a daemon that traces stopped processes dies, the
  /// kernel stops them again, each thread when it gets a processor. Until then, for a few
  /// milliseconds, they seem to run.
  func waitForStops() {
    let deadline = Deadline(in: .milliseconds(50))
    while !deadline.hasPassed,
      // If the processes can't be listed, the caller's next step reports the reason.
      (try? discover())?.processes.contains(where: {
        $0.state == .running || $0.state == .traced
      }) == true
    {
      pauseThread(for: .milliseconds(1))
    }
  }

  /// Corrects timeouts: the time asleep counts. If this fails, a call waits too long, and nothing
  /// else is wrong, so the worker is woken anyway.
  func correctTimeouts(_ session: TraceSession) {
    guard session.threads.contains(where: \.registers.mayNeedCorrection),
      // Without the correction its calls wait too long, but they return.
      let identity = session.identity, let memory = try? memory(of: identity)
    else { return }
    // Without the correction its calls wait too long, but they return.
    try? session.correctTimeouts(waits, memory: memory)
  }

  /// Corrects the timeouts of a worker that rests frozen with its memory in place. Only threads
  /// that need it are seized: most workers have none, and are woken without tracing.
  func correctTimeouts(of image: ImageReader, _ tree: ProcessTree) {
    // On other processors the kernel restarts calls itself.
    let repairsSignals = clinux_stop_hides_calls() == 1
    var timed: [(process: ProcessIdentity, threads: Set<Int32>)] = []
    for process in image.processes where !process.identity.hasEnded {
      let hasSignal = repairsSignals && process.identity.hasHandledSignal
      let threads = process.threads.filter {
        hasSignal || clinux_registers(storedWords: $0.registers)?.mayNeedCorrection ?? false
      }
      if !threads.isEmpty { timed.append((process.identity, Set(threads.map(\.tid)))) }
    }
    if timed.isEmpty { return }
    waits.willWake(tree)
    BriefTracer.perform { [timed] in
      let deadline = Deadline(in: .seconds(1))
      for (process, threads) in timed {
        guard
          let session = TraceSession.seizeWhatCanStop(process, only: threads, until: deadline)
        else { continue }
        // A failure costs at most an EINTR.
        if repairsSignals { try? session.restartInterruptedSyscalls() }
        correctTimeouts(session)
        session.detach(waiting: .zero)
      }
    }
  }

  /// Corrects the timeouts of a frozen worker, and lets it run.
  func wake(correctingTimeoutsOf image: ImageReader, mastersLast: Bool) throws {
    let tree = try discover()
    correctTimeouts(of: image, tree)
    try wake(tree, mastersLast: mastersLast)
  }

  /// Lets a stopped, traced or frozen worker run.
  ///
  /// - Parameters:
  ///   - listed: the worker's processes, if they have been listed since it came to rest.
  ///   - isStopped: false if only the freezer certainly keeps the worker from running. Then no
  ///     process gets a SIGCONT, which a program can see (and a process that had stopped itself
  ///     would continue).
  ///   - mastersLast: true keeps the masters of a prefork server stopped, until
  ///     `masters.release()`.
  public func wake(
    _ listed: ProcessTree? = nil, isStopped: Bool = true, mastersLast: Bool = true
  ) throws {
    let freezer = cgroup?.freezer
    let isSignalled = isStopped || freezer == nil
    let keepsMasters = mastersLast && masters.isPreforkServer
    if !mastersLast { masters.release() }
    if isSignalled || keepsMasters {
      var tree = try listed ?? discover()
      let stoppedMasters = keepsMasters ? masters.keepStopped(in: tree) : []
      // Perhaps only the freezer keeps them from running. The stop takes effect when the freezer
      // lets a process run, before any of its instructions.
      for master in stoppedMasters { try master.signal(SIGSTOP) }
      if isSignalled {
        tree.processes.removeAll { stoppedMasters.contains($0.identity) }
        try waits.continueAll(tree)
      }
    }
    try freezer?.thaw(until: Deadline(in: Self.timeout))
    try waitForStragglers()
    waits.didWake()
  }

  /// Waits for threads that an earlier hibernation couldn't detach: each is detached when it stops.
  /// While it is in that stop it doesn't run, so the worker isn't awake.
  private func waitForStragglers() throws {
    var stopped: [Int32] = []
    let isFree = try waitUntil(Deadline(in: .seconds(2))) {
      // This releases the calling thread's own stragglers; other threads release theirs.
      Stragglers.shared.release()
      // The processes are listed only if there are stragglers.
      guard Stragglers.shared.hasAny else { return true }
      stopped = Stragglers.shared.threads(of: try discover().pids).filter(Self.isInTraceStop)
      return stopped.isEmpty
    }
    if !isFree, let thread = stopped.first { throw TraceError.held(thread: thread) }
  }

  private static func isInTraceStop(_ thread: Int32) -> Bool {
    do throws(SystemCallError) { return try ProcessStat.read(thread).state == .traced } catch {
      return false
    }
  }
}

extension ProcessIdentity {
  fileprivate var hasHandledSignal: Bool {
    // A process that has ended handles nothing.
    (try? ProcessStatus.read(pid))?.hasHandledSignal ?? false
  }
}
