import Policy

// The disk's limits for hibernation: a budget for all images, room that stays free, bytes written
// in 24 hours.

extension Engine {
  mutating func recordDisk(_ reading: DiskReading) {
    disk = reading
    workers.markPendingOfDue(room: diskRoom, resumeRate)
  }

  /// Counts an image that was written. The engine counts images itself until the next reading, so
  /// that two hibernations don't use the same bytes.
  mutating func countImageWritten(_ size: ByteCount) {
    guard var reading = disk else { return }
    reading.images += size
    reading.writtenToday += size
    reading.free = max(.zero, reading.free - size)
    disk = reading
  }

  mutating func countImageRemoved(_ size: ByteCount) {
    guard var reading = disk else { return }
    reading.images = max(.zero, reading.images - size)
    reading.free += size
    disk = reading
    workers.markPendingOfDue(room: diskRoom, resumeRate)
  }

  /// The limit of the disk that prevents an image. `nil`: none.
  ///
  /// - Parameter image: the largest expected size.
  func diskObstacle(for image: ByteCount) -> HibernationObstacle? {
    guard let disk else { return nil }
    let rules = policy.hibernate.disk
    if disk.images + image > rules.budget {
      return .overDiskBudget(held: disk.images, adding: image, limit: rules.budget)
    }
    if disk.writtenToday + image > rules.dailyWrites {
      return .overDailyWrites(
        written: disk.writtenToday, adding: image, limit: rules.dailyWrites)
    }
    let minFree = minFree(of: disk)
    if disk.total > .zero, disk.free - image < minFree {
      return .diskNearlyFull(free: disk.free, adding: image, minFree: minFree)
    }
    return nil
  }

  /// The limit of the disk that prevents a trim's image of the worker, as a clause. `nil`: none.
  public func diskObstacle(forTrimOf worker: WorkerID) -> String? {
    index(of: worker).flatMap { diskObstacle(for: workers[$0].expectedTrimImage)?.sentence }
  }

  private func minFree(of disk: DiskReading) -> ByteCount {
    ByteCount(Int64(Double(disk.total.bytes) * policy.hibernate.disk.minFreePercent / 100))
  }

  /// The disk that holds the images: the last reading, with the images that were written since, and
  /// the least that must stay free. `nil`: there was no reading.
  public var imageDisk: (reading: DiskReading, minFree: ByteCount)? {
    disk.map { ($0, minFree(of: $0)) }
  }

  /// The size of the largest image that no limit of the disk prevents.
  var diskRoom: ByteCount {
    guard let disk else { return ByteCount(.max) }
    let room = min(policy.hibernate.disk.budget - disk.images, writableToday)
    return disk.total > .zero ? min(room, disk.free - minFree(of: disk)) : room
  }

  /// The bytes that may still be written in these 24 hours.
  var writableToday: ByteCount {
    guard let disk else { return ByteCount(.max) }
    return policy.hibernate.disk.dailyWrites - disk.writtenToday
  }
}

extension WorkerRecord {
  /// How much larger than the last image the next one may be. Compression varies with the content.
  static let imageMargin = 1.25

  /// The expected size of the next image. Until one of the worker's images was compressed, it is
  /// the size without compression.
  var expectedImage: ByteCount {
    guard let imageShare else { return movable }
    return ByteCount(Int64(Double(movable.bytes) * min(1, imageShare * Self.imageMargin)))
  }

  /// How much larger a trim's image is than a hibernation's, which is compressed by zstd.
  private static let trimFactor = 1.8

  /// The expected size of a trim's image.
  var expectedTrimImage: ByteCount {
    min(movable, ByteCount(Int64(Double(expectedImage.bytes) * Self.trimFactor)))
  }

  mutating func learnImage(_ result: HibernationResult) {
    guard result.footprintBefore > .zero else { return }
    imageShare = Double(result.imageSize.bytes) / Double(result.footprintBefore.bytes)
  }
}
