import CLinux
import Glibc
import Linux
import WorkerProtocol

/// Purgeable memory as a worker offers it: one slot, with content that may be purged.
struct OfferedMemory {
  let descriptor: Descriptor
  /// The size of the content, in bytes.
  let bytes: Int64

  init(pages: Int = 4, isSealed: Bool = true) throws {
    let page = Int(pageSize)
    bytes = Int64(pages * page)
    let size = Int64(page) + bytes
    let seals = isSealed ? Int32(CLINUX_SEAL_SHRINK) | Int32(CLINUX_SEAL_GROW) : 0
    descriptor = Descriptor(
      owning: try shim("memfd_create") {
        clinux_sealed_memory_file("purgeable", size, seals)
      })
    try write([PurgeableLayout.magic], at: 0)
    try write([UInt32(1), UInt32(page)], at: PurgeableLayout.slotCountOffset)
    let slot = PurgeableLayout.offset(ofSlot: 0)
    try write([UInt64(page), UInt64(bytes)], at: slot + PurgeableLayout.contentOffsetOffset)
    try write([UInt8](repeating: 1, count: Int(bytes)), at: page)
    try setState(PurgeableState(generation: 1, accesses: 0))
  }

  func setState(_ state: PurgeableState) throws {
    try write(
      [state.rawValue], at: PurgeableLayout.offset(ofSlot: 0) + PurgeableLayout.stateOffset)
  }

  private func write<Number>(_ numbers: [Number], at offset: Int) throws {
    try numbers.withUnsafeBytes { bytes in
      _ = try systemCall("pwrite") {
        pwrite(descriptor.raw, bytes.baseAddress, bytes.count, off_t(offset))
      }
    }
  }
}
