/// The use of the machine's memory in bytes, as a jetsam report shows it (proc_meminfo(5)).
public struct HostMemory: Hashable, Sendable {
  public var total: Int64
  public var free: Int64
  /// Memory that the kernel can reclaim without swapping: clean and dirty file pages, and slabs
  /// that can shrink.
  public var reclaimable: Int64
  /// Memory that can't be reclaimed: the kernel's own memory, and locked memory.
  public var wired: Int64

  public static func read() throws(SystemCallError) -> HostMemory {
    let path = "/proc/meminfo"
    guard let memory = HostMemory(parsing: try readFile(path)) else { throw malformed(path) }
    return memory
  }

  /// The result is `nil` if MemTotal or MemFree is missing.
  public init?(parsing bytes: [UInt8]) {
    var fields: [String: Int64] = [:]
    forEachField(bytes) { key, value in fields[key] = kilobytes(value) }
    guard let total = fields["MemTotal"], let free = fields["MemFree"] else { return nil }
    func sum(_ names: String...) -> Int64 { names.reduce(0) { $0 &+ (fields[$1] ?? 0) } }
    self.total = total
    self.free = free
    // Shared memory and tmpfs count as cached, but only swapping can free them.
    reclaimable = max(0, sum("Cached", "Buffers", "SReclaimable") &- sum("Shmem"))
    wired = sum("SUnreclaim", "KernelStack", "PageTables", "SecPageTables", "Percpu", "Unevictable")
  }
}
