import CLinux
import Glibc
import Linux
import Synchronization
import WorkerProtocol

/// A worker's purgeable memory (docs/worker-protocol.md), seen from the daemon. It measures how
/// much can be freed, and frees it, whether the worker runs or not.
///
/// The worker may be hostile, and may write anything to the file at any time. So each value is read
/// once and checked each time. The file can't shrink, because it is sealed. Each call visits each
/// slot once. Holes are only made between `dataOffset` and the end of the file as they were at the
/// beginning, where all bytes belong to the worker. The table is read by pread(2), which allocates
/// no memory where the file has holes: a worker can't make the daemon fill its table. The daemon
/// only touches the mapping at the slots that it purges.
///
/// All methods may be called on any thread, also at the same time. Two concurrent purges share the
/// slots.
public final class PurgeableRegion: Sendable {
  /// A larger file is refused. No machine has so much memory, and sums of sizes can't overflow.
  static let maxSize: Int64 = 1 << 46

  /// The size of the file in bytes.
  public let size: Int64
  public let slotCount: Int
  private let descriptor: Descriptor
  private let dataOffset: UInt64
  /// The address of the mapped table, as a number. All access is by atomics.
  private let table: Int64
  private var tableLength: Int64 { Int64(PurgeableLayout.tableLength(slots: slotCount)) }

  /// - Parameter descriptor: the descriptor that came with the worker's `purgeable` message.
  public init(_ descriptor: Descriptor) throws(PurgeableError) {
    var facts = clinux_shared_file()
    do throws(SystemCallError) {
      try shim("F_GET_SEALS") { clinux_shared_file_facts(descriptor.raw, &facts) }
    } catch { throw .notSharedMemory(error) }
    let seals = Int32(CLINUX_SEAL_SHRINK) | Int32(CLINUX_SEAL_GROW)
    guard facts.seals & seals == seals else { throw .notSealed }
    guard facts.size <= Self.maxSize else { throw .tooLarge(facts.size) }

    let header = try Self.header(of: descriptor)
    guard header.magic == PurgeableLayout.magic else { throw .wrongMagic }
    let slotCount = Int(header.slotCount)
    guard slotCount <= PurgeableLayout.maxSlots else { throw .tooManySlots(slotCount) }
    let dataOffset = Int(header.dataOffset)
    guard dataOffset >= PurgeableLayout.tableLength(slots: slotCount), dataOffset <= facts.size,
      UInt64(dataOffset) % pageSize == 0
    else { throw .wrongDataOffset(dataOffset) }

    do throws(SystemCallError) {
      table = try shim("mmap") {
        clinux_map_shared(descriptor.raw, Int64(PurgeableLayout.tableLength(slots: slotCount)))
      }
    } catch { throw .unreadable(error) }
    self.descriptor = descriptor
    self.size = facts.size
    self.slotCount = slotCount
    self.dataOffset = UInt64(dataOffset)
  }

  deinit { _ = clinux_unmap(table, tableLength) }

  /// The number of bytes of memory that the file occupies now. Reading it is cheap.
  public var allocatedBytes: Int64 { max(0, clinux_allocated_bytes(descriptor.raw)) }

  /// The number of bytes that `purge` would free now according to the worker's table, limited to
  /// what the file occupies. A running worker changes it all the time.
  public func volatileBytes() -> Int64 {
    let limit = min(clinux_allocated_bytes(descriptor.raw), size - Int64(dataOffset))
    guard limit > 0 else { return 0 }
    var sum: Int64 = 0
    forEachSlot { _, slot in
      if slot.state.isPurgeable, let extent = extent(slot.offset, slot.length) {
        sum += min(Int64(extent.count), limit - sum)
      }
      return sum < limit
    }
    return sum
  }

  /// Empties slots that are volatile and that the worker doesn't use, in the order of the table,
  /// until `limit` bytes have been freed. A slot is emptied as a whole, so more bytes may be freed.
  ///
  /// - Returns: the number of bytes that the file has lost, and the machine has gained.
  @discardableResult
  public func purge(atMost limit: Int64 = .max) -> Int64 {
    var freed: Int64 = 0
    // The contents of slots don't overlap. Without this limit, a table in which they do would make
    // the daemon empty the same pages without end.
    var remaining = size - Int64(dataOffset)
    forEachSlot { index, slot in
      guard freed < limit, remaining > 0 else { return false }
      guard slot.state.isPurgeable else { return true }
      let word = PurgeableWord(atomic(index, PurgeableLayout.stateOffset))
      guard let claimed = word.claim() else { return true }
      // The offset and length are read after the slot was claimed: before that, the worker might
      // have assigned the slot again.
      let offset = atomic(index, PurgeableLayout.contentOffsetOffset).pointee
        .load(ordering: .relaxed)
      let length = atomic(index, PurgeableLayout.contentLengthOffset).pointee
        .load(ordering: .relaxed)
      guard let extent = extent(offset, length), let bytes = punch(extent) else {
        word.spare(claimed)
        return true
      }
      word.empty(claimed)
      freed += bytes
      remaining -= Int64(extent.count)
      return true
    }
    return freed
  }

  /// The range of a slot, or nil if it isn't in the region or isn't made of whole pages.
  private func extent(_ offset: UInt64, _ length: UInt64) -> Range<Int64>? {
    let (end, overflow) = offset.addingReportingOverflow(length)
    guard !overflow, length > 0, offset >= dataOffset, end <= UInt64(size),
      offset % pageSize == 0, length % pageSize == 0
    else { return nil }
    return Int64(offset)..<Int64(end)
  }

  /// Makes a hole. Returns the number of bytes that the file has lost, or nil if the kernel
  /// refuses, because the worker has sealed the file against writing.
  private func punch(_ extent: Range<Int64>) -> Int64? {
    let before = clinux_allocated_bytes(descriptor.raw)
    var result: Int32
    repeat {
      result = clinux_punch(descriptor.raw, extent.lowerBound, Int64(extent.count))
    } while result == -EINTR
    guard result == 0 else { return nil }
    // The worker may have written elsewhere in the file, or made other holes, in the meantime.
    return max(0, min(before - clinux_allocated_bytes(descriptor.raw), Int64(extent.count)))
  }
}

extension PurgeableRegion {
  private static func header(
    of descriptor: Descriptor
  ) throws(PurgeableError) -> (magic: UInt64, slotCount: UInt32, dataOffset: UInt32) {
    let length = PurgeableLayout.headerLength
    var bytes: [UInt8]
    do throws(SystemCallError) {
      bytes = try descriptor.readBytes(upTo: length, at: 0)
    } catch { throw .unreadable(error) }
    // A shorter file has no table. Zeros at the end of the header express that.
    bytes += [UInt8](repeating: 0, count: length - bytes.count)
    return bytes.withUnsafeBytes { bytes in
      (
        bytes.load(as: UInt64.self),
        bytes.load(fromByteOffset: PurgeableLayout.slotCountOffset, as: UInt32.self),
        bytes.load(fromByteOffset: PurgeableLayout.dataOffsetOffset, as: UInt32.self)
      )
    }
  }

  /// The values of a slot when it was read.
  private struct Slot {
    var state: PurgeableState
    var offset: UInt64
    var length: UInt64
  }

  private static let slotsAtOnce = 1024

  /// Visits the slots once, until `body` returns false. It stops at a part of the table that can't
  /// be read.
  private func forEachSlot(_ body: (Int, Slot) -> Bool) {
    let slotLength = PurgeableLayout.slotLength
    withUnsafeTemporaryAllocation(
      byteCount: Self.slotsAtOnce * slotLength, alignment: MemoryLayout<UInt64>.alignment
    ) { buffer in
      var first = 0
      while first < slotCount {
        let wanted = min(Self.slotsAtOnce, slotCount - first)
        let position = PurgeableLayout.offset(ofSlot: first)
        let section = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(wanted * slotLength)])
        // A read error is treated as the end of the table.
        let length = (try? descriptor.read(into: section, at: Int64(position))) ?? 0
        guard length >= slotLength else { return }
        let count = length / slotLength
        for index in 0..<count where !body(first + index, slot(in: buffer, at: index)) { return }
        first += count
      }
    }
  }

  private func slot(in buffer: UnsafeMutableRawBufferPointer, at index: Int) -> Slot {
    let start = index * PurgeableLayout.slotLength
    func word(_ offset: Int) -> UInt64 {
      buffer.load(fromByteOffset: start + offset, as: UInt64.self)
    }
    return Slot(
      state: PurgeableState(rawValue: word(PurgeableLayout.stateOffset)),
      offset: word(PurgeableLayout.contentOffsetOffset),
      length: word(PurgeableLayout.contentLengthOffset))
  }

  /// A word of the mapped table. `slot` must be less than `slotCount`, so that the word is in the
  /// mapping. It is aligned, because the kernel maps whole pages. Both sides access these words
  /// only as atomics.
  private func atomic(_ slot: Int, _ field: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    let address = Int(table) + PurgeableLayout.offset(ofSlot: slot) + field
    guard let pointer = UnsafeMutablePointer<Atomic<UInt64>>(bitPattern: address) else {
      preconditionFailure("a mapping at 0")
    }
    return pointer
  }
}

/// The reason why a file that a worker sent can't be used as purgeable memory.
public enum PurgeableError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file isn't shared memory in ordinary pages (memfd_create(2)).
  case notSharedMemory(SystemCallError)
  /// The file isn't sealed, so the worker could truncate it while the daemon reads it.
  case notSealed
  /// The file has more bytes than `PurgeableRegion.maxSize`.
  case tooLarge(Int64)
  case unreadable(SystemCallError)
  case wrongMagic
  /// The file has more slots than `PurgeableLayout.maxSlots`.
  case tooManySlots(Int)
  /// The contents begin before the end of the table, after the end of the file, or not at a page
  /// boundary.
  case wrongDataOffset(Int)

  public var description: String {
    switch self {
    case .notSharedMemory(let error): "not a memfd of ordinary pages (\(error.reason))"
    case .notSealed: "not sealed with F_SEAL_SHRINK and F_SEAL_GROW"
    case .tooLarge(let size): "too large: \(size) bytes, at most \(PurgeableRegion.maxSize)"
    case .unreadable(let error): "can't be read and written: \(error)"
    case .wrongMagic: "does not begin with DORMPRG1"
    case .tooManySlots(let count): "invalid number of slots: \(count)"
    case .wrongDataOffset(let offset): "invalid offset of its contents: \(offset)"
    }
  }
}
