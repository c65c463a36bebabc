import CLinux
import Glibc
import Linux
import WorkerProtocol

@testable import Supervision

extension FuzzTarget {
  /// Reads the input as the beginning of a worker's purgeable memory.
  static let purgeable = FuzzTarget(
    read: { bytes in
      // The memory is a worker's own file. The worker must not be able to end the daemon.
      let seals = Int32(CLINUX_SEAL_SHRINK) | Int32(CLINUX_SEAL_GROW)
      // The sum of two lengths in the largest file doesn't fit in 64 bits.
      let size = sizes[bytes.count % sizes.count]
      let file = Descriptor(owning: clinux_sealed_memory_file("fuzz", size, seals))
      let start = Array(bytes.prefix(Int(length)))
      guard pwrite(file.raw, start, start.count, 0) == start.count,
        // A table that is refused is the right answer to most inputs.
        let region = try? PurgeableRegion(file)
      else { return }
      precondition((0...PurgeableLayout.maxSlots).contains(region.slotCount))
      let before = region.allocatedBytes
      precondition((0...size).contains(region.volatileBytes()))
      let some = region.purge(atMost: Int64(pageSize))
      let all = some + region.purge()
      precondition(some >= 0 && all <= before && region.allocatedBytes >= before - all)
    }, seeds: purgeableSeeds)
}

private let length = 32 * Int64(pageSize)
private let sizes = [length, PurgeableRegion.maxSize, .max]

private func purgeableSeeds() -> [String: [UInt8]] {
  var seeds: [String: [UInt8]] = [:]
  for slots in [1, 4, 100] {
    let page = Int(pageSize)
    let table = PurgeableLayout.tableLength(slots: slots)
    let dataOffset = (table + page - 1) / page * page
    var bytes = [UInt8](repeating: 0, count: table)
    put(PurgeableLayout.magic, 8, 0, &bytes)
    put(UInt64(slots), 4, PurgeableLayout.slotCountOffset, &bytes)
    put(UInt64(dataOffset), 4, PurgeableLayout.dataOffsetOffset, &bytes)
    for slot in 0..<slots {
      let offset = PurgeableLayout.offset(ofSlot: slot)
      let state = PurgeableState(generation: UInt32(slot), accesses: slot % 3 == 2 ? 1 : 0)
      put(state.rawValue, 8, offset, &bytes)
      let content = UInt64(dataOffset + slot % 8 * page)
      put(content, 8, offset + PurgeableLayout.contentOffsetOffset, &bytes)
      let length = slot % 4 == 1 ? UInt64(PurgeableRegion.maxSize / 2) : UInt64(page)
      put(length, 8, offset + PurgeableLayout.contentLengthOffset, &bytes)
    }
    // Some content, so that there is something to free. The number of bytes selects a size.
    for extra in sizes.indices {
      seeds["\(slots)-\(extra)"] =
        bytes + [UInt8](repeating: 1, count: dataOffset + 4 * page - bytes.count + extra)
    }
  }
  return seeds
}
