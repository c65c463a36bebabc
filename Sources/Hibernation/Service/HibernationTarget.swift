import CLinux
import Glibc
import Linux

/// One worker, as the hibernator needs it.
public struct HibernationTarget: Sendable {
  public var name: String
  public var root: ProcessIdentity
  /// The worker's own session, where it was started in one.
  public var session: Int32?
  /// Its cgroup, which says which processes belong to it. In a group of ours it rests frozen.
  /// Without one, or in a group that another program manages, it rests stopped, traced and parked
  /// (`Parking`): a foreign SIGCONT must not let it run on memory that isn't there.
  public var cgroup: WorkerCgroup?
  /// Descriptors of /proc/PID/mem that have been held since launch.
  public var memories: [Int32: Descriptor]
  /// What its threads wait for, over its sleeps.
  public var waits: TimedWaits

  public init(
    name: String, root: ProcessIdentity, session: Int32? = nil, cgroup: WorkerCgroup? = nil,
    memories: [Int32: Descriptor] = [:], waits: TimedWaits = TimedWaits()
  ) {
    self.name = name
    self.root = root
    self.session = session
    self.cgroup = cgroup
    self.memories = memories
    self.waits = waits
  }

  /// Time for a freeze, a thaw or a stop to take effect.
  static let patience: Duration = .seconds(5)

  func discover() throws -> ProcessTree {
    try ProcessTree.discover(root: root, session: session, cgroup: cgroup)
  }

  /// A fresh descriptor where we may still open one: one that was opened before the process's last
  /// exec leads to a memory that is gone.
  func memory(of process: ProcessIdentity) throws(SystemCallError) -> ProcessMemory {
    do throws(SystemCallError) { return try ProcessMemory(of: process) } catch {
      if let held = memories[process.pid], !error.meansVanished {
        return ProcessMemory(pid: process.pid, descriptor: held)
      }
      throw error
    }
  }

  /// Whether it rests in the freezer. A group in which somebody is being killed isn't frozen for a
  /// moment, although nobody has thawed it.
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

  /// Whether anybody of the worker is left, after something of it has ended. Waits for those who are
  /// just ending.
  func hasSurvivors() -> Bool {
    let deadline = Deadline(in: .milliseconds(500))
    while hasAnybody {
      if deadline.hasPassed { return true }
      pauseThread(for: .milliseconds(2))
    }
    return false
  }

  /// Whoever is being killed loses its memory first; from then on its files in /proc are refused to
  /// ordinary users.
  var hasAnybody: Bool {
    guard let tree = try? discover() else { return true }
    return tree.pids.contains(where: Self.hasMemory)
  }

  static func hasMemory(_ pid: Int32) -> Bool {
    // A process that has ended has no memory.
    (try? readText("/proc/\(pid)/status"))?.contains("\nVmSize:") == true
  }

  /// SIGSTOP to all, and all threads stopped. A frozen worker is stopped first and thawed then, so
  /// that it runs no instruction in between.
  ///
  /// - Parameter found: its processes, where they have been looked for since it was suspended.
  func stop(_ found: ProcessTree? = nil) throws -> ProcessTree {
    var known = found
    if let cgroup = cgroup?.freezer, try cgroup.isFrozen {
      let tree = try found ?? discover()
      try tree.signalAll(SIGSTOP)
      try cgroup.thaw(until: Deadline(in: Self.patience))
      known = tree
    }
    return try ProcessTree.stopAll(
      root: root, session: session, cgroup: cgroup, known: known,
      until: Deadline(in: Self.patience))
  }

  /// Before a worker that was only stopped or frozen runs on: its memory was never touched, but some
  /// of its calls would return EINTR for the stop, and others would wait for their whole time again.
  /// Where we may trace it, it doesn't notice. From any thread that isn't tracing it; a few hundred
  /// microseconds.
  ///
  /// Afterwards nothing of it is traced, whatever went wrong. A thread inside vfork(2) counts as
  /// frozen, and can't stop: it is left alone. (vfork isn't interrupted by a stop.)
  ///
  /// - Returns: its processes, for `wake`; `nil`: they couldn't be looked for.
  @discardableResult
  public func restartInterruptedSyscalls() -> ProcessTree? {
    // A group that is gone isn't frozen.
    let isFrozen = (try? isFrozen()) ?? false
    // `wake` looks itself then, and says why it can't.
    guard let tree = try? discover() else { return nil }
    waits.wakes(tree)
    let processes = tree.processes.filter { isFrozen || Self.isStopped($0.identity) }
    if processes.isEmpty { return tree }
    BriefTracer.perform {
      // A call that isn't made again costs the program an EINTR; a wake that hangs costs more.
      let deadline = Deadline(in: .seconds(1))
      for stat in processes {
        let session = TraceSession.seizeWhatCanStop(stat.identity, until: deadline)
        try? session?.restartInterruptedSyscalls()  // The same: an EINTR at most.
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

  /// When a daemon dies that has traced stopped processes, the kernel stops them again, each thread when
  /// it gets a processor. Until then they look like ones that run, for a few milliseconds.
  func waitForStops() {
    let deadline = Deadline(in: .milliseconds(50))
    while !deadline.hasPassed,
      // What can't be listed has ended.
      (try? discover())?.processes.contains(where: {
        $0.state == .running || $0.state == .traced
      }) == true
    {
      pauseThread(for: .milliseconds(1))
    }
  }

  /// The time asleep counts. Where this fails, a call waits for too long, and nothing else is wrong: so
  /// it is no reason not to wake a worker.
  func correctTimeouts(_ session: TraceSession) {
    guard session.threads.contains(where: \.registers.mayNeedCorrection),
      // Uncorrected, its calls wait for too long, but do return.
      let identity = session.identity, let memory = try? memory(of: identity)
    else { return }
    // The same.
    try? session.correctTimeouts(waits, memory: memory)
  }

  /// The same for one that rests frozen, with its memory in place. Only threads that need it are seized:
  /// most workers have none, and are woken without tracing.
  func correctTimeouts(of image: ImageReader, _ tree: ProcessTree) {
    var timed: [(process: ProcessIdentity, threads: Set<Int32>)] = []
    for process in image.processes where process.identity.isAlive {
      let threads = process.threads.filter {
        clinux_registers(storedWords: $0.registers)?.mayNeedCorrection ?? false
      }
      if !threads.isEmpty { timed.append((process.identity, Set(threads.map(\.tid)))) }
    }
    if timed.isEmpty { return }
    waits.wakes(tree)
    BriefTracer.perform { [timed] in
      let deadline = Deadline(in: .seconds(1))
      for (process, threads) in timed {
        guard
          let session = TraceSession.seizeWhatCanStop(process, only: threads, until: deadline)
        else { continue }
        correctTimeouts(session)
        session.detach(waiting: .zero)
      }
    }
  }

  /// The same, and lets it run.
  func wake(correctingTimeoutsOf image: ImageReader) throws {
    let tree = try discover()
    correctTimeouts(of: image, tree)
    try wake(tree)
  }

  /// Lets a stopped, traced or frozen worker run.
  ///
  /// - Parameters:
  ///   - found: its processes, where they have been looked for since it came to rest.
  ///   - isStopped: false where it is certain that only the freezer holds it. Then none of them
  ///     gets a SIGCONT, which a program can see (and one that had stopped itself would obey).
  public func wake(_ found: ProcessTree? = nil, isStopped: Bool = true) throws {
    let freezer = cgroup?.freezer
    if isStopped || freezer == nil { try (found ?? discover()).continueAll() }
    try freezer?.thaw(until: Deadline(in: Self.patience))
    try waitForStragglers()
    waits.hasWoken()
  }

  /// A thread that an earlier hibernation couldn't detach is detached when it stops. What stands in
  /// such a stop now doesn't run, and so the worker isn't awake.
  private func waitForStragglers() throws {
    var held: [Int32] = []
    let isFree = try waitUntil(Deadline(in: .seconds(2))) {
      // The calling thread's own; others look after theirs.
      Stragglers.shared.release()
      // Asking which processes it has is due only where there are any.
      guard Stragglers.shared.hasAny else { return true }
      held = Stragglers.shared.threads(of: try discover().pids).filter(Self.isInTraceStop)
      return held.isEmpty
    }
    if !isFree, let thread = held.first { throw TraceError.held(thread: thread) }
  }

  private static func isInTraceStop(_ thread: Int32) -> Bool {
    do throws(SystemCallError) { return try ProcessStat.read(thread).state == .traced } catch {
      return false
    }
  }
}
