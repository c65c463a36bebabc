import Linux

extension Hibernator {
  /// Checks that there is swap to which the processes' memory can be moved.
  static func checkSwap(of tree: ProcessTree) throws(HibernationError) {
    if let obstacle = swapObstacle(of: tree.pids) {
      throw HibernationError(.checking, obstacle, aftermath: .intact)
    }
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
