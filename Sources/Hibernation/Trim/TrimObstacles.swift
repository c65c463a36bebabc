import Linux

extension Hibernator {
  /// Checks that there is swap to which the processes' memory can be moved.
  static func checkSwap(of tree: ProcessTree) throws(HibernationError) {
    if let obstacle = swapObstacle(areas: SwapArea.all()) {
      throw HibernationError(.checking, obstacle, aftermath: .intact)
    }
    // If the limits of a process can't be read, the kernel decides.
    if let pid = tree.pids.first(where: { (try? ContainingLimits.swapLeft(of: $0)) == 0 }) {
      throw HibernationError(
        .checking,
        "the cgroup of process \(pid), or one above it, may use no more swap: raise its "
          + "memory.swap.max (MemorySwapMax= of a unit)")
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
