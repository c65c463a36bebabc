import Glibc
import Linux

// The kernel's own mechanism. A stopped program is paged out on request (process_madvise(2),
// MADV_PAGEOUT), and faults its pages in again one by one.

extension BenchSubject {
  func measureSwap() throws -> Int64 {
    guard !SwapArea.all().isEmpty else {
      throw MechanismRefusal(reason: "no swap on this machine (swapon(8), zramctl(8))")
    }
    let tree = try stop()
    do {
      for pid in tree.pids { try KernelSwap.pageOut(pid) }
      let memory = try Footprint.measure(tree.pids)
      guard memory.swapped > memory.anonymous else {
        throw MechanismRefusal(
          reason:
            "the kernel swapped out less than half of it; the swap may be full, or not permitted "
            + "for this cgroup (memory.swap.max)")
      }
    } catch {
      try tree.continueAll()
      throw error
    }
    let took = try timeFromOrder { try WakeOrder.performed { try tree.continueAll() } }
    // The other mechanisms must find the program in RAM.
    let deadline = Deadline(in: .seconds(60))
    for pid in try running.tree().pids {
      try SwappablePages.readBack(ProcessMemory(pid: pid), until: deadline)
    }
    return took
  }
}

enum KernelSwap {
  static func pageOut(_ pid: Int32) throws {
    let pidfd = try Descriptor.pidfd(of: pid)
    for range in try SwappablePages.resident(of: pid) {
      do throws(SystemCallError) { try range.pageOut(of: pid, through: pidfd) } catch {
        // Special mappings can't be paged out, and stay.
        if error.code == EINVAL { continue }
        guard error.code == EPERM else { throw error }
        throw MechanismRefusal(
          reason: "process_madvise(2) on another process needs CAP_SYS_NICE and permission to "
            + "trace it")
      }
    }
  }
}
