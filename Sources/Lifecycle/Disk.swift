import Policy

// The disk's share in hibernation: a budget for all images, room that stays free, bytes a day.

extension Engine {
  mutating func recordDisk(_ reading: DiskReading) {
    disk = reading
    noteRoomOnDisk()
  }

  /// Whoever waits for it is looked at again.
  private mutating func noteRoomOnDisk() {
    guard workers.lacksDisk else { return }
    workers.lacksDisk = false
    workers.markPending(.held)
  }

  /// Until the next reading the engine counts itself, lest two hibernations spend one byte twice.
  mutating func noteImageWritten(_ size: ByteCount) {
    guard var known = disk else { return }
    known.images += size
    known.writtenToday += size
    known.free = max(.zero, known.free - size)
    disk = known
  }

  mutating func noteImageRemoved(_ size: ByteCount) {
    guard var known = disk else { return }
    known.images = max(.zero, known.images - size)
    known.free += size
    disk = known
    noteRoomOnDisk()
  }

  /// Reckoned without compression, which can't be known before.
  func diskObstacle(for footprint: ByteCount) -> HibernationObstacle? {
    guard let disk else { return nil }
    let rules = policy.hibernate.disk
    if disk.images + footprint > rules.budget {
      return .overDiskBudget(held: disk.images, adding: footprint, limit: rules.budget)
    }
    if disk.writtenToday + footprint > rules.dailyWrites {
      return .overDailyWrites(
        written: disk.writtenToday, adding: footprint, limit: rules.dailyWrites)
    }
    let least = ByteCount(Int64(Double(disk.total.bytes) * rules.minFreePercent / 100))
    if disk.total > .zero, disk.free - footprint < least {
      return .diskNearlyFull(free: disk.free, adding: footprint, least: least)
    }
    return nil
  }
}
