import Policy

/// What the engine was told of the machine's memory.
struct MemoryState: Sendable {
  var reading: MemoryReading?
  /// When the latest reading or stall came.
  var heardAt = Instant.zero
  /// Per level: until when a PSI trigger's word holds, if no reading gainsays it.
  var stalledUntil: [PressureLevel: Instant] = [:]
}

extension Engine {
  /// What the pressure is measured against: the host's memory or the device's; zero before the
  /// first reading.
  public var budget: ByteCount {
    switch policy.memory {
    case .host: memory.reading?.total ?? .zero
    case .device(let size): size
    }
  }

  public var available: ByteCount {
    switch policy.memory {
    case .host: memory.reading?.available ?? .zero
    case .device(let size):
      max(.zero, size - workers.reduce(.zero) { $1.state.isAlive ? $0 + $1.footprint : $0 })
    }
  }

  public var pressure: PressureLevel { gauge.level }

  mutating func recordReading(_ reading: MemoryReading) {
    memory.reading = reading
    memory.heardAt = now
    // With PSI in it, the reading says whether it still stalls.
    if reading.someStall != nil || reading.fullStall != nil { memory.stalledUntil = [:] }
  }

  mutating func recordStall(_ level: PressureLevel) {
    guard let condition = policy.pressure[level] else { return }
    let windows = [condition.someStall, condition.fullStall].compactMap { $0?.window }
    guard let window = windows.max() else { return }
    memory.heardAt = now
    memory.stalledUntil[level] = now + max(policy.pressure.clearAfter, window)
  }

  /// The highest level of which a condition holds now, and which condition that is.
  func holdingLevel() -> (level: PressureLevel, why: String) {
    for level in PressureLevel.allCases.reversed() {
      if let why = reason(for: level) { return (level, why) }
    }
    return (.normal, "\(available) of \(budget) are available")
  }

  private func reason(for level: PressureLevel) -> String? {
    guard let condition = policy.pressure[level] else { return nil }
    if let limit = condition.availableBelow, isShort(of: limit) {
      return "\(available) of \(budget) are available, less than \(limit.spoken)"
    }
    guard policy.memory == .host else { return nil }
    if let until = memory.stalledUntil[level], now < until {
      return "the kernel reports tasks stalled on memory"
    }
    if let stall = condition.someStall, let share = memory.reading?.someStall,
      share >= stall.percent
    {
      return "tasks stalled on memory for \(share.spokenPercent) of the time"
    }
    if let stall = condition.fullStall, let share = memory.reading?.fullStall,
      share >= stall.percent
    {
      return "all tasks stalled on memory for \(share.spokenPercent) of the time"
    }
    return nil
  }

  /// `credit`: what shadow mode would have freed.
  func isShort(of limit: PressureCondition.Amount, credit: ByteCount = .zero) -> Bool {
    budget > .zero && available + credit < limit.bytes(of: budget)
  }
}
