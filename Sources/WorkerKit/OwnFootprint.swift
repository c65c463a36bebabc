import CWorkerKit

/// The memory of this process, by kind, in bytes.
///
/// Clean pages of files (code, mapped files) are counted only in `reclaimable`: the kernel can drop
/// them at any time.
public struct Footprint: Sendable, Hashable {
  /// Private memory that has been written to: heap, stacks, changed parts of files.
  public var anonymous: Int64 = 0
  /// Shared memory, such as that of `PurgeableData`. Memory that other processes map as well counts
  /// with this process's share.
  public var sharedMemory: Int64 = 0
  /// Memory that the kernel has moved to swap.
  public var swapped: Int64 = 0
  /// Clean pages of files. They aren't part of `total`: the kernel can drop them without asking.
  public var reclaimable: Int64 = 0

  /// The footprint as the daemon counts it and as policies limit it: anonymous, shared and swapped
  /// memory.
  public var total: Int64 { anonymous + sharedMemory + swapped }

  /// A footprint of zero bytes. `current()` measures this process.
  public init() {}

  /// Measures this process by `/proc/self/smaps_rollup`.
  ///
  /// A call takes some hundred microseconds, and longer if the process has much memory. It may be
  /// made from any thread. All values are zero if the system doesn't report them. On macOS the
  /// whole physical footprint is in `anonymous`.
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
    // Pages of a program file that was written a moment ago count as dirty in the processes that
    // map it, until the file is on disk. They aren't anonymous, so `Anonymous` limits the sum.
    footprint.anonymous = min(dirty - footprint.sharedMemory, fields["Anonymous"] ?? dirty)
    footprint.swapped = fields["Swap"] ?? 0
    footprint.reclaimable = (fields["Private_Clean"] ?? 0) + (fields["Shared_Clean"] ?? 0)
    return footprint
  }

  /// Measures the memory of each named mapping by `/proc/self/smaps`, the largest first, in bytes.
  ///
  /// The names are the kernel's: `[heap]`, `[stack]`, `/memfd:purgeable (deleted)` and paths of
  /// files. All mappings without a name are summed as `[anonymous]`. Mappings without private dirty
  /// or swapped pages are left out. A call takes milliseconds, and may be made from any thread.
  public static func byMapping() -> [(name: String, bytes: Int64)] {
    var sums: [String: Int64] = [:]
    var name = ""
    forEachLine(of: "/proc/self/smaps", capacity: 8 << 20) { line in
      if let (key, bytes) = field(line) {
        if key == "Private_Dirty" || key == "Swap" { sums[name, default: 0] += bytes }
      } else {
        // A mapping's line has the address, rights, offset, device, inode and name.
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

  /// Parses a line such as `Key:   12 kB`. The result is `nil` for any other line.
  private static func field(_ line: Substring) -> (Substring, Int64)? {
    guard line.hasSuffix(" kB"), let colon = line.firstIndex(of: ":") else { return nil }
    let number = line[line.index(after: colon)...].dropLast(3).drop { $0 == " " }
    return Int64(number).map { (line[..<colon], $0 * 1024) }
  }
}
