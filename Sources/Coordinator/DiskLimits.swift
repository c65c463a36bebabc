import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy

extension Daemon {
  /// Why an image of about this much memory may not be written; `nil`: it may. Reckoned without
  /// compression, and as if nothing were unchanged, which can't be known before.
  ///
  /// What workers that run have left on disk for their next image gives way where room is short.
  func diskRefusal(for footprint: ByteCount) -> String? {
    let rules = engine.policy.hibernate.disk
    let written = ledger.total(at: Int64(time(nil))).bytes + footprint.bytes
    if written > rules.dailyWrites.bytes {
      return "\(ByteCount(written)) would have been written to images in 24 hours, over "
        + "hibernate.disk.daily_writes, \(rules.dailyWrites)"
    }
    let (held, idle) = imageBytes()
    if let refusal = spaceRefusal(for: footprint, held: held, idle: 0) {
      if idle == 0 || spaceRefusal(for: footprint, held: held, idle: idle) != nil { return refusal }
      // Done before anything that is asked of it later.
      hibernation.dropIdleBases()
    }
    return nil
  }

  /// - Parameter idle: bytes that would be given up.
  private func spaceRefusal(for footprint: ByteCount, held: Int64, idle: Int64) -> String? {
    let rules = engine.policy.hibernate.disk
    let held = held - idle + footprint.bytes
    if held > rules.budget.bytes {
      return "images would hold \(ByteCount(held)), over hibernate.disk.budget, \(rules.budget)"
    }
    var usage = statvfs()
    guard statvfs(state.images, &usage) == 0, usage.f_blocks > 0 else { return nil }
    // File systems without a size of their own answer with anything up to 2⁶⁴ blocks.
    let size = Double(usage.f_frsize)
    let free = Double(usage.f_bavail) * size + Double(idle - footprint.bytes)
    if free < Double(usage.f_blocks) * size * rules.minFreePercent / 100 {
      let left = ByteCount(Int64(exactly: max(0, free).rounded()) ?? .max)
      return "the disk of \(state.images) would have \(left) free, under "
        + "hibernate.disk.min_free, \(rules.minFreePercent)%"
    }
    return nil
  }

  /// Of all images and what they lie over; and what of that belongs to workers that aren't hibernated.
  private func imageBytes() -> (held: Int64, idle: Int64) {
    workers.values.reduce((0, 0)) { sum, runtime in
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
