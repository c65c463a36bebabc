import Glibc
import Lifecycle
import Linux
import Policy

/// Bytes written to images since midnight (UTC).
struct DailyCount {
  private var day: Int = 0
  private var bytes: Int64 = 0

  mutating func add(_ count: Int64) {
    let today = time(nil) / 86400
    if today != day { (day, bytes) = (today, 0) }
    bytes += count
  }

  var today: Int64 { time(nil) / 86400 == day ? bytes : 0 }
}

extension Daemon {
  /// Tells the engine what images may take.
  func takeDiskReading() {
    var usage = statvfs()
    let isKnown = statvfs(state.images, &usage) == 0
    // File systems without a size of their own answer with anything up to 2⁶⁴ blocks.
    func bytes(_ blocks: UInt) -> ByteCount {
      let (product, overflow) = UInt64(blocks).multipliedReportingOverflow(
        by: UInt64(usage.f_frsize))
      return ByteCount(overflow ? .max : Int64(clamping: product))
    }
    feed(
      .disk(
        DiskReading(
          total: isKnown ? bytes(usage.f_blocks) : .zero,
          free: isKnown ? bytes(usage.f_bavail) : .zero, images: ByteCount(imageBytes()),
          writtenToday: ByteCount(writtenToday.today))))
  }

  /// Why an image of about this much memory may not be written; `nil`: it may. Reckoned without
  /// compression, which can't be known before.
  func diskRefusal(for footprint: ByteCount) -> String? {
    let rules = engine.policy.hibernate.disk
    let held = imageBytes() + footprint.bytes
    if held > rules.budget.bytes {
      return "images would hold \(ByteCount(held)), over hibernate.disk.budget, \(rules.budget)"
    }
    let written = writtenToday.today + footprint.bytes
    if written > rules.dailyWrites.bytes {
      return "\(ByteCount(written)) would be written to images today, over "
        + "hibernate.disk.daily_writes, \(rules.dailyWrites)"
    }
    var usage = statvfs()
    guard statvfs(state.images, &usage) == 0, usage.f_blocks > 0 else { return nil }
    // File systems without a size of their own answer with anything up to 2⁶⁴ blocks.
    let size = Double(usage.f_frsize)
    let free = Double(usage.f_bavail) * size - Double(footprint.bytes)
    if free < Double(usage.f_blocks) * size * rules.minFreePercent / 100 {
      let left = ByteCount(Int64(exactly: max(0, free).rounded()) ?? .max)
      return "the disk of \(state.images) would have \(left) free, under "
        + "hibernate.disk.min_free, \(rules.minFreePercent)%"
    }
    return nil
  }

  private func imageBytes() -> Int64 {
    workers.values.reduce(0) { sum, runtime in
      guard let path = runtime.imagePath else { return sum }
      var info = stat()
      return stat(path, &info) == 0 ? sum + Int64(info.st_size) : sum
    }
  }
}
