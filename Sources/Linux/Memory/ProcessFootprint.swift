import Glibc

/// The memory of one or several processes, in bytes (`/proc/PID/smaps_rollup`).
public struct Footprint: Hashable, Sendable {
  /// Memory that would be free if the processes ended: private dirty memory, plus anonymous memory
  /// that they share with one another (once), plus swap.
  ///
  /// Private_Dirty alone would be too much: pages of a program file that was just written count as
  /// dirty for the process that maps it, until they are on disk. So the private dirty memory counts
  /// at most as much as the sum of anonymous and shared memory.
  public var footprint: Int64 {
    cappedDirty + sharedByFork + swapped
  }
  /// The share of `footprint` that consists of anonymous pages which several processes share since
  /// a fork, each page counted once over all of them. If other processes share a page as well, only
  /// these processes' share of it counts. Such pages are free when the last process has ended, and
  /// a hibernation doesn't move them.
  public var sharedByFork: Int64 {
    max(0, proportionalAnonymous - droppable - cappedDirty)
  }
  private var cappedDirty: Int64 {
    sharedMemory.map { min(privateDirty, anonymous + $0) } ?? privateDirty
  }
  /// The sum of Private_Dirty.
  public var privateDirty: Int64 = 0
  /// The sum of Pss_Shmem; nil before Linux 5.10.
  public var sharedMemory: Int64?
  /// Private_Clean + Shared_Clean: file pages that the kernel may drop at any time.
  public var reclaimable: Int64 = 0
  /// Resident memory (Rss), with all pages that other processes share.
  public var resident: Int64 = 0
  /// Resident memory (Pss); a page that several processes share counts by the process's share of
  /// it.
  public var proportional: Int64 = 0
  public var anonymous: Int64 = 0
  /// The sum of Pss_Anon; 0 before Linux 5.10.
  var proportionalAnonymous: Int64 = 0
  /// The sum of LazyFree: anonymous memory that the program has freed by MADV_FREE and that the
  /// kernel hasn't reclaimed yet.
  var droppable: Int64 = 0
  /// The share of `footprint` that is in swap: the sum of SwapPss, so that a page that processes
  /// share since a fork counts once. Swap would count it for each of them, and also all of the
  /// shared memory that is in swap, for each process that maps it.
  public var swapped: Int64 = 0

  public init() {}

  /// Measures a process; nil if it has ended. The kernel walks all of its pages, which takes
  /// milliseconds for a large process.
  public static func measure(_ pid: Int32) throws(FootprintError) -> Footprint? {
    do throws(SystemCallError) {
      return Footprint(parsing: try readFile("/proc/\(pid)/smaps_rollup"))
    } catch {
      if !error.meansVanished { throw FootprintError(pid: pid, cause: error) }
    }
    // Kernels before 4.14 have only the long form; a process that has ended has neither.
    do throws(SystemCallError) {
      return Footprint(parsing: try readFile("/proc/\(pid)/smaps"))
    } catch {
      if error.meansVanished { return nil }
      throw FootprintError(pid: pid, cause: error)
    }
  }

  /// Measures several processes and returns the sum. Processes that have ended count as 0.
  public static func measure(_ pids: [Int32]) throws(FootprintError) -> Footprint {
    var sum = Footprint()
    for pid in pids {
      if let one = try measure(pid) { sum += one }
    }
    return sum
  }

  /// Parses smaps_rollup, or smaps, whose mappings are added up.
  public init(parsing bytes: [UInt8]) {
    forEachField(bytes) { key, value in
      if let add = Footprint.fields[key], let size = kilobytes(value) { add(&self, size) }
    }
  }

  private static let fields: [String: @Sendable (inout Footprint, Int64) -> Void] = [
    "Private_Dirty": { $0.privateDirty &+= $1 },
    "SwapPss": { $0.swapped &+= $1 },
    "Pss_Shmem": { $0.sharedMemory = ($0.sharedMemory ?? 0) &+ $1 },
    "Private_Clean": { $0.reclaimable &+= $1 },
    "Shared_Clean": { $0.reclaimable &+= $1 },
    "Rss": { $0.resident &+= $1 },
    "Pss": { $0.proportional &+= $1 },
    "Anonymous": { $0.anonymous &+= $1 },
    "Pss_Anon": { $0.proportionalAnonymous &+= $1 },
    "LazyFree": { $0.droppable &+= $1 },
  ]

  public static func += (left: inout Footprint, right: Footprint) {
    left.privateDirty &+= right.privateDirty
    if let more = right.sharedMemory { left.sharedMemory = (left.sharedMemory ?? 0) &+ more }
    left.reclaimable &+= right.reclaimable
    left.resident &+= right.resident
    left.proportional &+= right.proportional
    left.anonymous &+= right.anonymous
    left.proportionalAnonymous &+= right.proportionalAnonymous
    left.droppable &+= right.droppable
    left.swapped &+= right.swapped
  }
}

/// The error of a process whose memory can't be measured.
public struct FootprintError: Error, Hashable, Sendable, CustomStringConvertible {
  public let pid: Int32
  public let cause: SystemCallError

  public var description: String {
    guard cause.code == EACCES || cause.code == EPERM else { return "\(cause)" }
    return "can't measure process \(pid): it belongs to another user, or has made itself "
      + "undumpable (setuid, PR_SET_DUMPABLE); measuring it takes CAP_SYS_PTRACE"
  }
}
