import Glibc

/// What a process, or several, hold in memory; bytes (`/proc/PID/smaps_rollup`).
public struct Footprint: Hashable, Sendable {
  /// What it alone keeps, and what would come back if it ended: private dirty memory + swap.
  ///
  /// Private_Dirty alone would say too much: pages of a program file that was written a moment ago
  /// count as dirty for who maps it, until they are on disk. So no more than anonymous and shared
  /// memory make up.
  public var footprint: Int64 {
    (sharedMemory.map { min(privateDirty, anonymous + $0) } ?? privateDirty) + swapped
  }
  /// Private_Dirty.
  public var privateDirty: Int64 = 0
  /// Pss_Shmem; nil before Linux 5.10.
  public var sharedMemory: Int64?
  /// Private_Clean + Shared_Clean: file pages that the kernel may drop at any time.
  public var reclaimable: Int64 = 0
  public var resident: Int64 = 0
  /// Resident, pages shared with others counted by share.
  public var proportional: Int64 = 0
  public var anonymous: Int64 = 0
  /// Part of `footprint`.
  public var swapped: Int64 = 0

  public init() {}

  /// nil when the process is gone.
  public static func measure(_ pid: Int32) throws(FootprintError) -> Footprint? {
    do throws(SystemCallError) {
      return Footprint(parsing: try readNamedFile("/proc/\(pid)/smaps_rollup"))
    } catch {
      if !error.meansVanished { throw FootprintError(pid: pid, cause: error) }
    }
    // Kernels before 4.14 have only the long form; a process that has ended has neither.
    do throws(SystemCallError) {
      return Footprint(parsing: try readNamedFile("/proc/\(pid)/smaps"))
    } catch {
      if error.meansVanished { return nil }
      throw FootprintError(pid: pid, cause: error)
    }
  }

  /// The sum over a tree; processes that have gone count as nothing.
  public static func measure(_ pids: [Int32]) throws(FootprintError) -> Footprint {
    var sum = Footprint()
    for pid in pids {
      if let one = try measure(pid) { sum += one }
    }
    return sum
  }

  /// Of smaps_rollup, or of smaps, whose mappings are added up.
  public init(parsing bytes: [UInt8]) {
    forEachField(bytes) { key, value in
      if let add = Footprint.fields[key], let size = kilobytes(value) { add(&self, size) }
    }
  }

  private static let fields: [String: @Sendable (inout Footprint, Int64) -> Void] = [
    "Private_Dirty": { $0.privateDirty &+= $1 },
    "Swap": { $0.swapped &+= $1 },
    "Pss_Shmem": { $0.sharedMemory = ($0.sharedMemory ?? 0) &+ $1 },
    "Private_Clean": { $0.reclaimable &+= $1 },
    "Shared_Clean": { $0.reclaimable &+= $1 },
    "Rss": { $0.resident &+= $1 },
    "Pss": { $0.proportional &+= $1 },
    "Anonymous": { $0.anonymous &+= $1 },
  ]

  public static func += (left: inout Footprint, right: Footprint) {
    left.privateDirty &+= right.privateDirty
    if let more = right.sharedMemory { left.sharedMemory = (left.sharedMemory ?? 0) &+ more }
    left.reclaimable &+= right.reclaimable
    left.resident &+= right.resident
    left.proportional &+= right.proportional
    left.anonymous &+= right.anonymous
    left.swapped &+= right.swapped
  }
}

/// A process whose memory can't be measured.
public struct FootprintError: Error, Hashable, Sendable, CustomStringConvertible {
  public let pid: Int32
  public let cause: SystemCallError

  public var description: String {
    guard cause.code == EACCES || cause.code == EPERM else { return "\(cause)" }
    return "can't measure process \(pid): it belongs to another user, or has made itself "
      + "undumpable (setuid, PR_SET_DUMPABLE); measuring it takes CAP_SYS_PTRACE"
  }
}
