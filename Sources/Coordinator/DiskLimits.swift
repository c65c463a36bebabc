import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy

// The engine decides whether an image may be written; here is what the disk looks like.

extension Daemon {
  /// Tells the engine what images may take. What workers that run have left on disk for their next
  /// image counts as free: it gives way where room is short.
  func takeDiskReading() {
    let (held, idle) = imageBytes()
    let disk = fileSystem()
    feed(
      .disk(
        DiskReading(
          total: disk?.total ?? .zero, free: (disk?.free ?? .zero) + ByteCount(idle),
          images: ByteCount(held - idle),
          writtenToday: ByteCount(ledger.total(at: Int64(time(nil))).bytes))))
  }

  /// Before an image of about this much memory, reckoned without compression, and as if nothing were
  /// unchanged: takes away what others have left for their next ones, where that is in the way.
  func makeRoomOnDisk(for footprint: ByteCount) {
    let (held, idle) = imageBytes()
    guard idle > 0 else { return }
    let rules = engine.policy.hibernate.disk
    var isShort = ByteCount(held) + footprint > rules.budget
    if let disk = fileSystem() {
      let least = Double(disk.total.bytes) * rules.minFreePercent / 100
      isShort = isShort || Double((disk.free - footprint).bytes) < least
    }
    // Done before anything that is asked of it later.
    if isShort { hibernation.dropIdleBases() }
  }

  private func fileSystem() -> (total: ByteCount, free: ByteCount)? {
    var usage = statvfs()
    guard statvfs(state.images, &usage) == 0 else { return nil }
    // File systems without a size of their own answer with anything up to 2⁶⁴ blocks.
    func bytes(_ blocks: UInt) -> ByteCount {
      let (product, overflow) = UInt64(blocks).multipliedReportingOverflow(
        by: UInt64(usage.f_frsize))
      return ByteCount(overflow ? .max : Int64(clamping: product))
    }
    return (bytes(usage.f_blocks), bytes(usage.f_bavail))
  }

  /// Of all images and what they lie over; and what of that belongs to workers that aren't hibernated.
  private func imageBytes() -> (held: Int64, idle: Int64) {
    if let wrapped { return (WrapStore.imageBytes(of: wrapped.settings), 0) }
    return workers.values.reduce((0, 0)) { sum, runtime in
      let base = baseBytes(of: runtime.id.name)
      let image = runtime.imagePath.map(Self.length) ?? 0
      return (sum.0 + image + base, sum.1 + (runtime.imagePath == nil ? base : 0))
    }
  }

  /// What of a worker stays on disk for its next image.
  func baseBytes(of worker: String) -> Int64 {
    Self.length(Hibernator.basePath(of: state.image(of: worker)))
  }

  private static func length(_ path: String) -> Int64 {
    var info = stat()
    return stat(path, &info) == 0 ? Int64(info.st_size) : 0
  }
}
