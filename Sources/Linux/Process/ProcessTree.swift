import Glibc

/// The processes of one worker, parents before their children. Zombies don't count.
///
/// In a cgroup the tree is all processes of the group. Otherwise it is found from the root by
/// closure: the children of a member belong to it, and so do the members of a session that a member
/// leads (a grandchild whose parent has ended gets another parent, but stays in its session). A
/// process that starts a session of its own *and* loses its parent isn't found; only in a cgroup
/// does it stay part of the worker.
public struct ProcessTree: Hashable, Sendable {
  public var processes: [ProcessStat]

  public init(processes: [ProcessStat]) { self.processes = processes }

  public var pids: [Int32] { processes.map(\.pid) }
  public var isEmpty: Bool { processes.isEmpty }

  public func contains(_ pid: Int32) -> Bool { processes.contains { $0.pid == pid } }

  /// Finds the processes of a worker. To find many trees, use one `ProcessScan`.
  ///
  /// - Parameter session: a session that belongs to the worker even if its leader has ended.
  public static func discover(
    root: ProcessIdentity, session: Int32? = nil, cgroup: WorkerCgroup? = nil
  ) throws(SystemCallError) -> ProcessTree {
    guard let cgroup else {
      let tree = try ProcessScan.read().tree(root: root, session: session)
      // /proc may hide the root (hidepid, if it isn't dumpable). Then nothing is known about the
      // worker.
      if !tree.contains(root.pid), case .unknown(let error) = root.life { throw error }
      return tree
    }
    return ProcessTree(processes: parentsFirst(try living(cgroup.processes())))
  }

  /// Reads the stats of those pids whose processes haven't ended.
  ///
  /// - Parameter skipsHidden: true: processes that may not be read are left out.
  static func living(
    _ pids: [Int32], skipsHidden: Bool = false
  ) throws(SystemCallError) -> [ProcessStat] {
    var stats: [ProcessStat] = []
    for pid in pids {
      do throws(SystemCallError) {
        let stat = try ProcessStat.read(pid)
        if !stat.isEnded { stats.append(stat) }
      } catch {
        // Under hidepid (proc(5)) most of /proc may not be read. Among the worker's processes, only
        // those that aren't dumpable are hidden.
        let isHidden = skipsHidden && (error.code == EPERM || error.code == EACCES)
        if !error.meansVanished && !isHidden { throw error }
      }
    }
    return stats
  }

  /// The calculation in `discover`, without any I/O.
  static func members(
    of all: [ProcessStat], root: ProcessIdentity, session: Int32?, wrapper: WrapperTree? = nil
  ) -> [ProcessStat] {
    var members: Set<Int32> = []
    var sessions: Set<Int32> = []
    if let session, session > 0, !isReused(session, root, by: all) { sessions.insert(session) }
    // No process of the worker is older than its root. An older one has a pid or session number
    // that was reused.
    let recent = all.filter { $0.startTime >= root.startTime }
    let candidates = wrapper?.withoutInner(recent, root: root) ?? recent
    // A side program has none of the worker's orphans.
    let claimant = wrapper?.others?.contains(root.pid) == true ? nil : wrapper
    var grew = true
    while grew {
      grew = false
      for stat in candidates where !members.contains(stat.pid) {
        guard
          stat.identity == root || members.contains(stat.parent) || sessions.contains(stat.session)
            || claimant?.claims(stat) == true
        else { continue }
        members.insert(stat.pid)
        if stat.session == stat.pid { sessions.insert(stat.pid) }
        grew = true
      }
    }
    return candidates.filter { members.contains($0.pid) }
  }

  /// Whether the session number belongs to another session by now: the process with this pid isn't
  /// the one that led the worker's session. (While a process of the old session lives, the kernel
  /// gives its number to no other process.)
  private static func isReused(
    _ session: Int32, _ root: ProcessIdentity, by all: [ProcessStat]
  ) -> Bool {
    guard let leader = all.first(where: { $0.pid == session }) else { return false }
    // The leader is the root, or is older than the root.
    return session == root.pid ? leader.identity != root : leader.startTime > root.startTime
  }

  static func parentsFirst(_ processes: [ProcessStat]) -> [ProcessStat] {
    generations(of: processes).flatMap { $0 }
  }

  /// Groups processes: those without a parent among them, then their children, then the children of
  /// these, and so on.
  static func generations(of processes: [ProcessStat]) -> [[ProcessStat]] {
    let present = Set(processes.map(\.pid))
    let children = Dictionary(grouping: processes) { present.contains($0.parent) ? $0.parent : 0 }
    var generations: [[ProcessStat]] = []
    var generation = children[0] ?? []
    while !generation.isEmpty {
      generations.append(generation)
      generation = generation.flatMap { children[$0.pid] ?? [] }
    }
    // If a process gets another parent while the list is read, parents can form a ring. These
    // processes are added as the last group.
    let placed = Set(generations.joined().map(\.pid))
    let ring = processes.filter { !placed.contains($0.pid) }
    return ring.isEmpty ? generations : generations + [ring]
  }

  /// Sends a signal to each process whose pid hasn't been reused since the tree was read. One that
  /// can't be signalled (setuid) doesn't keep the signal from the others; its error is thrown when
  /// all others have it.
  ///
  /// - Returns: the number of processes that got the signal.
  @discardableResult
  public func signalAll(_ signal: Int32) throws(SystemCallError) -> Int {
    var count = 0
    var failure: SystemCallError?
    for stat in processes {
      do throws(SystemCallError) {
        if try stat.identity.signal(signal) { count += 1 }
      } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
    return count
  }

  /// Sends SIGCONT, children first: a parent that wakes must not find them still stopped. A process
  /// that another program traces gets no signal. One that can't be signalled doesn't keep the
  /// others stopped; its error is thrown when all others continue.
  public func continueAll() throws(SystemCallError) {
    var failure: SystemCallError?
    for stat in processes.reversed() where !Self.hasForeignTracer(stat.pid) {
      do throws(SystemCallError) { try stat.identity.signal(SIGCONT) } catch {
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }

  /// The pid of a process that another program traces; nil if there is none.
  public var tracedByOthers: Int32? { pids.first(where: Self.hasForeignTracer) }

  /// Whether another program traces the process: a debugger, which would treat each signal as an
  /// event of the program.
  static func hasForeignTracer(_ pid: Int32) -> Bool {
    // A process that has ended has no tracer.
    guard let tracer = try? ProcessStatus.read(pid).tracer, tracer != 0 else { return false }
    return !fileExists("/proc/self/task/\(tracer)")
  }

  /// Kills all processes of the tree, and repeats that until no new one is found. This includes
  /// processes that were forked between a listing and its kill. (A process with a pending SIGKILL
  /// can't fork any more.) When this returns, the processes are ending, but may not have ended. A
  /// process that may not be killed (setuid) doesn't protect the others.
  ///
  /// If processes fork faster than they are found, all are stopped first: stopped processes still
  /// count against the limits that keep the others from forking.
  ///
  /// - Throws: ETIMEDOUT if new processes still appear at the deadline.
  public static func killAll(
    root: ProcessIdentity, session: Int32? = nil, cgroup: WorkerCgroup? = nil,
    until deadline: Deadline = Deadline(in: .seconds(5))
  ) throws(SystemCallError) {
    var killed: Set<ProcessIdentity> = []
    var stopped: Set<ProcessIdentity> = []
    var failure: SystemCallError?
    func send(_ number: Int32, to processes: some Sequence<ProcessIdentity>) {
      for process in processes {
        do throws(SystemCallError) { try process.signal(number) } catch { failure = error }
      }
    }
    for round in 1... {
      let listed = try discover(root: root, session: session, cgroup: cgroup).processes
      let new = listed.map(\.identity).filter { !killed.contains($0) && !stopped.contains($0) }
      if new.isEmpty, stopped.isEmpty { break }
      let isLate = deadline.hasPassed
      if round <= roundsOfKilling || new.isEmpty || isLate {
        send(SIGKILL, to: stopped)
        send(SIGKILL, to: new)
        killed.formUnion(stopped)
        killed.formUnion(new)
        stopped = []
      } else {
        send(SIGSTOP, to: new)
        stopped.formUnion(new)
      }
      if isLate {
        throw SystemCallError("kill", on: "pid \(root.pid) and all below it", code: ETIMEDOUT)
      }
    }
    if let failure { throw failure }
  }

  /// After this many rounds, new processes are stopped first. Nearly always the second round finds
  /// no process.
  private static let roundsOfKilling = 4
}
