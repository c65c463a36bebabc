import CWorkerKit
import Synchronization
import WorkerProtocol

/// The memory behind `PurgeableData`: a sealed file of shared memory with the table that
/// `PurgeableLayout` shows. If the process can't have such a file, private memory with the same
/// table replaces it. This type has only addresses and words; `PurgeableHeap` decides which pages
/// may be used.
///
/// The memory is sparse: its size is address space, and only pages that are written to take memory.
final class PurgeableMapping: Sendable {
  /// The descriptor of the file, or -1 for private memory, which no other process can purge.
  let file: Int32
  let pageSize: Int
  let slotCount: Int
  /// The number of pages for contents.
  let pageCount: Int
  private let size: Int
  private let dataOffset: Int
  /// The address, as a number: the state of a slot, an atomic, guards everything that is read or
  /// written there.
  private let base: UInt

  /// Creates the mapping with the first of these sizes that is possible. The result is `nil` if
  /// there isn't enough address space.
  init?(sizes: [Int] = [1 << 30, 1 << 28, 1 << 26], slots: Int = 16_384, isShared: Bool = true) {
    let pageSize = Int(workerkit_page_size())
    let attempts: [(file: Bool, size: Int)] =
      (isShared ? sizes.map { (true, $0) } : []) + sizes.map { (false, $0) }
    for (file, size) in attempts {
      var error: Int32 = 0
      let descriptor = file ? workerkit_memory_file(Int64(size)) : -1
      guard descriptor >= 0 || !file else { continue }
      guard let address = workerkit_map(descriptor, Int64(size), &error) else {
        if file { workerkit_close(descriptor) }
        continue
      }
      let table = PurgeableLayout.tableLength(slots: slots)
      self.file = descriptor
      self.pageSize = pageSize
      self.size = size
      slotCount = slots
      dataOffset = (table + pageSize - 1) / pageSize * pageSize
      pageCount = (size - dataOffset) / pageSize
      base = UInt(bitPattern: address)
      writeHeader()
      return
    }
    return nil
  }

  deinit {
    workerkit_unmap(UnsafeMutableRawPointer(bitPattern: base), Int64(size))
    if file >= 0 { workerkit_close(file) }
  }

  private func writeHeader() {
    let header = pointer(0)
    header.storeBytes(of: PurgeableLayout.magic.littleEndian, as: UInt64.self)
    header.storeBytes(
      of: UInt32(slotCount).littleEndian, toByteOffset: PurgeableLayout.slotCountOffset,
      as: UInt32.self)
    header.storeBytes(
      of: UInt32(dataOffset).littleEndian, toByteOffset: PurgeableLayout.dataOffsetOffset,
      as: UInt32.self)
  }

  private func pointer(_ offset: Int) -> UnsafeMutableRawPointer {
    guard let pointer = UnsafeMutableRawPointer(bitPattern: base + UInt(offset)) else {
      preconditionFailure("a mapping at 0")
    }
    return pointer
  }

  func word(_ slot: Int) -> PurgeableWord {
    let slotAddress = pointer(PurgeableLayout.offset(ofSlot: slot))
    return PurgeableWord(slotAddress.assumingMemoryBound(to: Atomic<UInt64>.self))
  }

  func content(page: Int) -> UnsafeMutableRawPointer {
    pointer(dataOffset + page * pageSize)
  }

  /// Writes the location of a slot's content. The slot must be unused.
  func describe(_ slot: Int, page: Int, pages: Int) {
    let slotAddress = pointer(PurgeableLayout.offset(ofSlot: slot))
    slotAddress.storeBytes(
      of: UInt64(dataOffset + page * pageSize),
      toByteOffset: PurgeableLayout.contentOffsetOffset, as: UInt64.self)
    slotAddress.storeBytes(
      of: UInt64(pages * pageSize), toByteOffset: PurgeableLayout.contentLengthOffset,
      as: UInt64.self)
  }

  /// Frees pages, which read as zeros afterwards.
  func punch(page: Int, pages: Int) {
    let offset = dataOffset + page * pageSize
    let code = workerkit_punch(file, pointer(0), Int64(offset), Int64(pages * pageSize))
    // The file was sealed against writing by a process that has the descriptor. The pages must
    // still read as zeros.
    if code < 0 {
      content(page: page).initializeMemory(as: UInt8.self, repeating: 0, count: pages * pageSize)
    }
  }
}
