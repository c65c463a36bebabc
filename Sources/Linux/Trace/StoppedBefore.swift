import Synchronization

/// The processes of a worker that were stopped before it fell asleep: a shell's job after Ctrl-Z,
/// or a child to which the program has sent SIGSTOP. The end of a sleep must not continue them. A
/// later daemon doesn't know them.
extension TimedWaits {
  /// Call it just before the worker is stopped: a process that continues after this call stays
  /// stopped.
  func recordStopped(in tree: ProcessTree) {
    let stopped = tree.processes.filter {
      // A process that can't be read has ended.
      $0.state == .stopped && (try? ProcessStat.read($0.pid))?.state == .stopped
    }
    // If all are stopped, a wake that failed may have left them so. The next one continues them.
    let areAllStopped = stopped.count == tree.processes.count
    stoppedBefore.withLock { $0 = areAllStopped ? [] : Set(stopped.map(\.identity)) }
  }

  /// Continues the processes of a worker, except those that were stopped before the worker was; see
  /// `ProcessTree.continueAll`.
  public func continueAll(_ tree: ProcessTree) throws(SystemCallError) {
    let before = stoppedBefore.withLock { $0 }
    try ProcessTree(processes: tree.processes.filter { !before.contains($0.identity) })
      .continueAll()
  }
}
