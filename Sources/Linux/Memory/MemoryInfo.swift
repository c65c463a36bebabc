/// The state of the machine's memory in bytes (`/proc/meminfo`, proc_meminfo(5)).
public struct MemoryInfo: Hashable, Sendable {
  public static let path = "/proc/meminfo"

  public var total: Int64
  /// The kernel's estimate of the memory that could be allocated without swapping.
  public var available: Int64
  public var swapFree: Int64
  /// The directory of a cgroup whose limit leaves less memory than the machine has
  /// (`ContainingLimits`); nil if no limit does.
  public var limitedBy: String?

  public init(total: Int64, available: Int64, swapFree: Int64) {
    self.total = total
    self.available = available
    self.swapFree = swapFree
  }

  /// Reads the machine's memory.
  ///
  /// - Parameter withPerCPULists: true: includes the free pages that each CPU keeps for itself. The
  ///   kernel's estimate excludes them, and varies by tens of megabytes with them. Reading them
  ///   costs more, so it is for measurements rather than for sampling.
  public static func read(withPerCPULists: Bool = false) throws(SystemCallError) -> MemoryInfo {
    guard var info = MemoryInfo(parsing: try readRecord(path)) else { throw malformed(path) }
    if withPerCPULists {
      let pages = perCPUPages(parsing: try readFile("/proc/zoneinfo"))
      info.available += pages * Int64(pageSize)
    }
    return info
  }

  /// Reads the machine's memory from an open record of `path`.
  public static func read(_ record: KernelRecord) throws(SystemCallError) -> MemoryInfo {
    guard let info = MemoryInfo(parsing: try record.read()) else { throw malformed(record.path) }
    return info
  }

  /// The result is nil if MemTotal or MemAvailable is missing (the latter came with Linux 3.14).
  public init?(parsing bytes: [UInt8]) {
    guard let total = value(of: "MemTotal:", in: bytes).flatMap(kilobytes),
      let available = value(of: "MemAvailable:", in: bytes).flatMap(kilobytes)
    else { return nil }
    self.init(
      total: total, available: available,
      swapFree: value(of: "SwapFree:", in: bytes).flatMap(kilobytes) ?? 0)
  }

  /// The number of processes of the whole machine that the kernel's OOM killer has ended
  /// (`oom_kill` of /proc/vmstat); nil if it can't be read.
  public static func killedForMemory() -> Int? {
    guard let bytes = try? readFile("/proc/vmstat") else { return nil }
    return WorkerCgroup.killedForMemory(in: bytes)
  }

  /// Returns the sum of the `count:` lines of /proc/zoneinfo, in pages.
  public static func perCPUPages(parsing bytes: [UInt8]) -> Int64 {
    var pages: Int64 = 0
    forEachField(bytes) { key, value in
      let isCount = key.utf8.words().last.map { $0.elementsEqual("count".utf8) } ?? false
      if isCount, let count: Int64 = value.number() { pages &+= count }
    }
    return pages
  }
}
