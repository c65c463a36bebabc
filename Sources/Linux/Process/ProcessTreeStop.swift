import Glibc

/// The reason why a tree couldn't be stopped. The processes that had been stopped run again.
public enum ProcessTreeError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A thread doesn't come to rest. It is usually in uninterruptible sleep.
  case stuck(pid: Int32, name: String, thread: Int32, ProcessStat.State)
  /// New processes kept appearing until the deadline.
  case keepsForking(newest: Int32)
  /// Another program traces a process. A debugger would treat SIGSTOP as an event of the program.
  case traced(pid: Int32)
  case failed(SystemCallError)

  public var description: String {
    switch self {
    case .stuck(let pid, let name, let thread, .uninterruptible):
      "process \(pid) (\(name)) can't be stopped: its thread \(thread) is in uninterruptible "
        + "sleep (D), waiting for a device, a file system or a child between vfork and exec; "
        + "try again later"
    case .stuck(let pid, let name, let thread, let state):
      "process \(pid) (\(name)) hasn't stopped in time: its thread \(thread) is \(state)"
    case .keepsForking(let newest):
      "it starts processes faster than they can be stopped (the newest is \(newest)); "
        + "run it in a cgroup to freeze it as one"
    case .traced(let pid): "another program traces process \(pid) (a debugger?)"
    case .failed(let error): "\(error)"
    }
  }
}

extension ProcessTree {
  /// Stops the whole tree with SIGSTOP. It repeats that until no new process appears, and every
  /// thread of every process is at rest. If it fails, it is undone.
  ///
  /// A process is stopped when its parent is at rest. The kernel wakes a parent that waits for its
  /// children to deliver its SIGSTOP, and the parent checks its children once more on the way
  /// (do_wait in kernel/exit.c). A shell that finds its job stopped then takes the terminal back
  /// when it continues.
  ///
  /// - Parameters:
  ///   - initial: the tree as it was read just now. It replaces the first reading only: a reading
  ///     proves that no process is missing if all processes found before were at rest.
  ///   - wasFrozen: true if the processes in `initial` have been frozen until now. Then their calls
  ///     are recorded already, and their threads run for a moment on their way to the stop.
  public static func stopAll(
    root: ProcessIdentity, session: Int32? = nil, cgroup: WorkerCgroup? = nil,
    initial: ProcessTree? = nil, wasFrozen: Bool = false, until deadline: Deadline
  ) throws(ProcessTreeError) -> ProcessTree {
    var initial = initial
    var areCallsRecorded = wasFrozen
    var stopped: [ProcessStat] = []
    var timeout = Duration.milliseconds(50)
    let blocked = min(deadline, Deadline(in: .seconds(1)))
    do throws(ProcessTreeError) {
      while true {
        let tree = try rethrowing { () throws(SystemCallError) in
          if let initial { return initial }
          return try discover(root: root, session: session, cgroup: cgroup)
        }
        initial = nil
        let earlier = Set(stopped.map(\.identity))
        let new = tree.processes.filter { !earlier.contains($0.identity) }
        // All processes in this reading were at rest before it, so none can have forked since.
        if new.isEmpty {
          // A process that was in an earlier reading only has become a wrapper with a worker of its
          // own (`WrapperTree`).
          undo(stopped.filter { !tree.contains($0.pid) })
          return tree
        }
        if deadline.hasPassed, !stopped.isEmpty, let newest = new.last {
          throw .keepsForking(newest: newest.pid)
        }
        if let traced = ProcessTree(processes: new).tracedByOthers { throw .traced(pid: traced) }
        if !areCallsRecorded { CallsBeforeStop.record(new.map(\.pid)) }
        areCallsRecorded = false
        for generation in generations(of: new) {
          for stat in generation {
            let sent = try rethrowing { () throws(SystemCallError) in
              try stat.identity.signal(SIGSTOP)
            }
            // A process that has ended doesn't appear again, so only a process that got the signal
            // is recorded.
            if sent { stopped.append(stat) }
          }
          guard
            let blocker = try firstBlocked(
              generation, until: deadline, timeout: timeout, blockedUntil: blocked)
          else { continue }
          // A child that was stopped between vfork and exec blocks its parent. Start again from the
          // beginning after the child has executed its program.
          undo(stopped)
          stopped = []
          waitWhileBlocked(blocker.thread, of: blocker.pid, until: blocked)
          timeout = timeout * 2
          break
        }
      }
    } catch {
      undo(stopped)
      throw error
    }
  }

  /// Continues processes, children first, as `continueAll` does, except those that were stopped
  /// already when they were read.
  private static func undo(_ stopped: [ProcessStat]) {
    // A process that has ended needs no SIGCONT.
    for stat in stopped.reversed() where stat.state != .stopped {
      _ = try? stat.identity.signal(SIGCONT)
    }
  }

  /// Waits until all threads are at rest. If a thread has been in uninterruptible sleep for longer
  /// than `timeout` and there is time left, it returns that thread.
  ///
  /// - Parameter blockedUntil: the deadline for such threads. It is near, because the caller
  ///   manages other workers too.
  private static func firstBlocked(
    _ processes: [ProcessStat], until deadline: Deadline, timeout: Duration,
    blockedUntil: Deadline
  ) throws(ProcessTreeError) -> (pid: Int32, thread: Int32)? {
    for stat in processes {
      let limit = min(deadline, Deadline(in: timeout))
      do throws(ProcessTreeError) { try waitForRest(stat, until: limit) } catch {
        if deadline.hasPassed { throw error }
        if case .stuck(let pid, _, let thread, .uninterruptible) = error {
          if blockedUntil.hasPassed { throw error }
          return (pid, thread)
        }
        try waitForRest(stat, until: deadline)
      }
    }
    return nil
  }

  private static func waitWhileBlocked(
    _ thread: Int32, of pid: Int32, until deadline: Deadline
  ) {
    let limit = min(deadline, Deadline(in: .milliseconds(200)))
    _ = waitUntil(limit) { () throws(Never) in
      do throws(SystemCallError) {
        return try ProcessStat.read(thread: thread, of: pid).state != .uninterruptible
      } catch { return true }
    }
  }

  /// Waits until no thread of the process runs.
  public static func waitForRest(
    _ process: ProcessStat, until deadline: Deadline
  ) throws(ProcessTreeError) {
    var restless: (thread: Int32, state: ProcessStat.State)?
    let isAtRest = try waitUntil(deadline) { () throws(ProcessTreeError) in
      restless = try rethrowing { () throws(SystemCallError) in
        try firstRestless(of: process.pid)
      }
      return restless == nil
    }
    guard !isAtRest, let restless else { return }
    throw .stuck(
      pid: process.pid, name: process.name, thread: restless.thread, restless.state)
  }

  /// Returns a thread that isn't at rest; nil if all are at rest, or if the process has ended.
  private static func firstRestless(
    of pid: Int32
  ) throws(SystemCallError) -> (thread: Int32, state: ProcessStat.State)? {
    do throws(SystemCallError) {
      for thread in try threads(of: pid) {
        do throws(SystemCallError) {
          let state = try ProcessStat.read(thread: thread, of: pid).state
          if !state.isAtRest { return (thread, state) }
        } catch {
          if !error.meansVanished { throw error }
        }
      }
    } catch {
      if !error.meansVanished { throw error }
    }
    return nil
  }

  private static func rethrowing<Result>(
    _ body: () throws(SystemCallError) -> Result
  ) throws(ProcessTreeError) -> Result {
    do throws(SystemCallError) { return try body() } catch { throw .failed(error) }
  }
}
