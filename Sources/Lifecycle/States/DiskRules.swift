import Policy

// The disk's limits for hibernation: a budget for all images, room that stays free, bytes a day.

extension Engine {
  mutating func recordDisk(_ reading: DiskReading) {
    disk = reading
    workers.markPendingOfDue(room: diskRoom, resumeRate)
  }

  /// The engine counts images itself until the next reading, so that two hibernations don't use the
  /// same bytes.
  mutating func countImageWritten(_ size: ByteCount) {
    guard var known = disk else { return }
    known.images += size
    known.writtenToday += size
    known.free = max(.zero, known.free - size)
    disk = known
  }

  mutating func countImageRemoved(_ size: ByteCount) {
    guard var known = disk else { return }
    known.images = max(.zero, known.images - size)
    known.free += size
    disk = known
    workers.markPendingOfDue(room: diskRoom, resumeRate)
  }

  /// `image`: the expected size at most.
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
    let least = leastFree(of: disk)
    if disk.total > .zero, disk.free - image < least {
      return .diskNearlyFull(free: disk.free, adding: image, least: least)
    }
    return nil
  }

  private func leastFree(of disk: DiskReading) -> ByteCount {
    ByteCount(Int64(Double(disk.total.bytes) * policy.hibernate.disk.minFreePercent / 100))
  }

  /// The disk of the images as last looked at, with the images since; and what of it must stay free. nil: it
  /// hasn't been looked at.
  public var imageDisk: (reading: DiskReading, least: ByteCount)? {
    disk.map { ($0, leastFree(of: $0)) }
  }

  /// The largest image for which there is no `diskObstacle`.
  var diskRoom: ByteCount {
    guard let disk else { return ByteCount(.max) }
    let room = min(policy.hibernate.disk.budget - disk.images, writableToday)
    return disk.total > .zero ? min(room, disk.free - leastFree(of: disk)) : room
  }

  /// What may still be written today.
  var writableToday: ByteCount {
    guard let disk else { return ByteCount(.max) }
    return policy.hibernate.disk.dailyWrites - disk.writtenToday
  }
}

extension WorkerRecord {
  /// Compression varies with the content: the estimate is a quarter more than the last time.
  static let imageMargin = 1.25

  /// Without compression, until one of the worker's images has been compressed.
  var expectedImage: ByteCount {
    guard let imageShare else { return movable }
    return ByteCount(Int64(Double(movable.bytes) * min(1, imageShare * Self.imageMargin)))
  }

  mutating func learnImage(_ result: HibernationResult) {
    guard result.footprintBefore > .zero else { return }
    imageShare = Double(result.imageSize.bytes) / Double(result.footprintBefore.bytes)
  }
}
