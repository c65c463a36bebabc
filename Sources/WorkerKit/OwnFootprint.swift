import CWorkerKit

/// What this process takes of the machine's memory, by kind; bytes.
///
/// Clean pages of files (code, mapped files) aren't counted, except in `reclaimable`: the kernel can drop
/// those at any time.
public struct Footprint: Sendable, Hashable {
  /// Private memory that has been written to: heap, stacks, changed parts of files.
  public var anonymous: Int64 = 0
  /// Shared memory, such as that of `PurgeableData`; memory that other processes map as well is counted by
  /// share.
  public var sharedMemory: Int64 = 0
  /// Memory that the kernel has moved to swap.
  public var swapped: Int64 = 0
  /// Not part of `total`: the kernel can take it without asking.
  public var reclaimable: Int64 = 0

  /// The footprint as the daemon counts it, and as policies limit it.
  public var total: Int64 { anonymous + sharedMemory + swapped }

  public init() {}

  /// Measures this process (`/proc/self/smaps_rollup`): some hundred microseconds, longer with much memory.
  /// All zero where the system doesn't report it. On macOS all of it is in `anonymous`.
  public static func current() -> Footprint {
    var footprint = Footprint()
    let physical = workerkit_physical_footprint()
    guard physical < 0 else {
      footprint.anonymous = physical
      return footprint
    }
    var fields: [Substring: Int64] = [:]
    forEachLine(of: "/proc/self/smaps_rollup", capacity: 4096) { line in
      if let (key, bytes) = field(line) { fields[key, default: 0] += bytes }
    }
    let dirty = fields["Private_Dirty"] ?? 0
    footprint.sharedMemory = min(fields["Pss_Shmem"] ?? 0, dirty)
    // A program file that was written a moment ago counts as dirty for the processes that map it, until it is
    // on disk.
    footprint.anonymous = min(dirty - footprint.sharedMemory, fields["Anonymous"] ?? dirty)
    footprint.swapped = fields["Swap"] ?? 0
    footprint.reclaimable = (fields["Private_Clean"] ?? 0) + (fields["Shared_Clean"] ?? 0)
    return footprint
  }

  /// The memory of each named mapping (`/proc/self/smaps`), the largest first: `[heap]`, `[stack]`,
  /// `/memfd:purgeable (deleted)`, files, and `[anonymous]` for all without a name. Takes milliseconds.
  public static func byMapping() -> [(name: String, bytes: Int64)] {
    var sums: [String: Int64] = [:]
    var name = ""
    forEachLine(of: "/proc/self/smaps", capacity: 8 << 20) { line in
      if let (key, bytes) = field(line) {
        if key == "Private_Dirty" || key == "Swap" { sums[name, default: 0] += bytes }
      } else {
        // address, rights, offset, device, inode, name
        let parts = line.split(separator: " ", maxSplits: 5)
        if parts.count >= 5, parts[0].contains("-") {
          name = parts.count > 5 ? String(parts[5].drop { $0 == " " }) : "[anonymous]"
        }
      }
    }
    return sums.filter { $0.value > 0 }.sorted { $0.value > $1.value }
      .map { (name: $0.key, bytes: $0.value) }
  }

  private static func forEachLine(
    of path: String, capacity: Int, _ body: (Substring) -> Void
  ) {
    let text = String(unsafeUninitializedCapacity: capacity) { buffer in
      max(0, Int(workerkit_read_file(path, buffer.baseAddress, Int64(capacity))))
    }
    for line in text.split(separator: "\n") { body(line) }
  }

  /// `Key:   12 kB`
  private static func field(_ line: Substring) -> (Substring, Int64)? {
    guard line.hasSuffix(" kB"), let colon = line.firstIndex(of: ":") else { return nil }
    let number = line[line.index(after: colon)...].dropLast(3).drop { $0 == " " }
    return Int64(number).map { (line[..<colon], $0 * 1024) }
  }
}
