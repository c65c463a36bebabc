import Linux

extension Hibernator {
  /// Checks that there is swap to which the processes' memory can be moved.
  ///
  /// - Parameter otherObstacle: the reason why an image can't be used in its place.
  static func checkSwap(
    of tree: ProcessTree, otherObstacle: String? = nil
  ) throws(HibernationError) {
    guard let obstacle = swapObstacle(of: tree.pids) else { return }
    throw HibernationError(
      .checking, [obstacle, otherObstacle].compactMap(\.self).joined(separator: "; or: "),
      aftermath: .intact)
  }

  /// The reason why the memory of these processes can't be moved to swap; nil if there is none.
  public static func swapObstacle(of pids: [Int32]) -> String? {
    if let obstacle = swapObstacle(areas: SwapArea.all()) { return obstacle }
    // If the limits of a process can't be read, the kernel decides.
    return pids.first { (try? ContainingLimits.swapLeft(of: $0)) == 0 }
      .map {
        "the cgroup of process \($0), or one above it, may use no more swap: raise its "
          + "memory.swap.max (MemorySwapMax= of a unit)"
      }
  }

  /// Checks that threads of the processes may be borrowed now. A process that another program has
  /// stopped or traces isn't touched.
  static func checkBorrowing(from tree: ProcessTree) throws(HibernationError) {
    Stragglers.shared.release(of: tree.pids, within: .milliseconds(100))
    for process in tree.processes {
      if process.state == .stopped || process.state == .traced {
        throw HibernationError(
          .checking, "process \(process.pid) (\(process.name)) was stopped by another program")
      }
      if let traced = ProcessTree(processes: [process]).tracedByOthers {
        throw HibernationError(
          .checking, "process \(traced) is traced by another program (a debugger?)")
      }
      if ForeignFreeze.holds(process.pid) {
        throw HibernationError(
          .checking, "another program has frozen its cgroup (process \(process.pid))")
      }
      let isRoot = process.pid == tree.pids.first
      try Eligibility.checkTracing(process, aftermath: isRoot ? .ineligible : .intact)
      try Eligibility.checkArchitecture(process)
    }
    try checkDivisibleCalls(of: tree)
  }

  /// Waits up to 200 ms until no thread is in a call that a stop would end early.
  static func checkDivisibleCalls(of tree: ProcessTree) throws(HibernationError) {
    let thread = try attempt(.stopping) {
      try DivisibleCall.thread(in: tree, until: Deadline(in: .milliseconds(200)))
    }
    if let thread {
      throw HibernationError(
        .stopping, "thread \(thread) is in a call that a stop would end early")
    }
  }

  /// The reason why nothing can be moved to swap; nil if there is none.
  static func swapObstacle(areas: [SwapArea]) -> String? {
    if areas.isEmpty {
      return "there is no swap on this machine: make a zram device or a swap file, and turn it on "
        + "(zramctl(8), mkswap(8), swapon(8))"
    }
    if areas.allSatisfy({ $0.free == 0 }) {
      return "all swap of this machine is in use: add some (swapon(8)), or end what uses it"
    }
    return nil
  }
}
