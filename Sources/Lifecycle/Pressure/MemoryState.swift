import Policy

/// What the daemon has reported about the machine's memory.
struct MemoryState: Codable, Sendable, Equatable {
  var reading: MemoryReading?
  /// When the latest reading or stall was reported.
  var heardAt = Instant.zero
  /// For each level, how long a PSI trigger counts, unless a reading contradicts it.
  var stalled = PerLevel<StallReport>()

  /// How long the report of a PSI trigger counts.
  struct StallReport: Codable, Sendable, Equatable {
    /// Until then a reading can't contradict the report: PSI averages cover a window, and may not
    /// show the spike yet.
    var firmUntil: Instant
    var until: Instant
  }
}

extension Engine {
  /// What the pressure is measured against: the memory of the host or of the simulated device. Zero
  /// before the first reading.
  public var budget: ByteCount {
    switch policy.memory {
    case .host: memory.reading?.total ?? .zero
    case .device(let size): size
    }
  }

  /// The memory that is available now, of the host or of the simulated device.
  public var available: ByteCount {
    switch policy.memory {
    case .host: memory.reading?.available ?? .zero
    case .device(let size):
      max(.zero, size - workers.resident)
    }
  }

  /// The pressure level, with hysteresis.
  public var pressure: PressureLevel { gauge.level }

  /// The machine's memory as last reported. `nil`: there was no report.
  public var memoryReading: MemoryReading? { memory.reading }

  mutating func recordReading(_ reading: MemoryReading) {
    memory.reading = reading
    memory.heardAt = now
    if ladderState.freed != nil { ladderState.freed = .zero }
    // A reading with PSI shows whether tasks still stall.
    guard reading.someStall != nil || reading.fullStall != nil else { return }
    for index in PerLevel<Instant>.levels.indices {
      let level = PerLevel<Instant>.levels[index]
      if let word = memory.stalled[level], now >= word.firmUntil { memory.stalled[level] = nil }
    }
  }

  mutating func recordStall(_ level: PressureLevel) {
    guard let condition = policy.pressure[level] else { return }
    let windows = [condition.someStall, condition.fullStall].compactMap { $0?.window }
    guard let window = windows.max() else { return }
    memory.heardAt = now
    memory.stalled[level] = MemoryState.StallReport(
      firmUntil: now + window, until: now + max(policy.pressure.clearAfter, window))
  }

  /// The highest level of which a measured condition holds now.
  func holdingLevel() -> PressureLevel {
    var level = PressureLevel.critical
    while level > .normal, reason(for: level) == nil { level = level.below }
    return level
  }

  /// The reason for that level, as text for people.
  func levelReason() -> String {
    var share = "\(available) of \(budget) available"
    let swap = countedSwap(at: .critical)
    if swap > .zero { share += ", and \(swap) of swap" }
    if let set = setPressure, set.level > holdingLevel() {
      return "set by `dormouse pressure set \(set.level.name)`; \(share)"
    }
    return switch reason(for: holdingLevel()) {
    case nil: share
    case .short(let limit)?: "\(share), less than \(limit.text)"
    case .stalled?: "the kernel reports that tasks wait for memory (PSI)"
    case .someStall(let time)?:
      "some tasks waited for memory \(time.percentText) of the time (PSI)"
    case .fullStall(let time)?:
      "all tasks waited for memory \(time.percentText) of the time (PSI)"
    }
  }

  private enum Reason {
    case short(PressureCondition.Amount)
    case stalled
    case someStall(Double)
    case fullStall(Double)
  }

  private func reason(for level: PressureLevel) -> Reason? {
    guard let condition = policy.pressure[level] else { return nil }
    if let limit = condition.availableBelow, isShort(of: limit, at: level) { return .short(limit) }
    guard policy.memory == .host else { return nil }
    // Stalls show that some program waits for memory, not that the machine has none. A program that
    // thrashes under the limit of its own cgroup gains nothing from the end of a worker.
    guard level > .warning else {
      return stallReason(for: .warning) ?? stallReason(for: .urgent)
        ?? stallReason(for: .critical)
    }
    return stallsCount ? stallReason(for: level) : nil
  }

  /// Whether so little memory is available that stalls may cause a termination.
  private var stallsCount: Bool {
    let limit = PressureCondition.Amount.percent(policy.pressure.stallsCountBelow)
    return available < limit.bytes(of: budget) || policy.pressure.stallsCountBelow >= 100
  }

  private func stallReason(for level: PressureLevel) -> Reason? {
    guard let condition = policy.pressure[level] else { return nil }
    if let word = memory.stalled[level], now < word.until { return .stalled }
    if let stall = condition.someStall, let share = memory.reading?.someStall,
      share >= stall.percent
    {
      return .someStall(share)
    }
    if let stall = condition.fullStall, let share = memory.reading?.fullStall,
      share >= stall.percent
    {
      return .fullStall(share)
    }
    return nil
  }

  /// Whether memory is short at that level. Stalls alone aren't enough for a termination, unless
  /// little memory is available.
  func isReallyShort(at level: PressureLevel) -> Bool {
    if let limit = policy.pressure[level]?.availableBelow, isShort(of: limit, at: level) {
      return true
    }
    return policy.memory == .host && stallsCount
  }

  /// Whether less than `limit` is available at that level.
  ///
  /// - Parameter credit: memory that counts as available, too: it was freed since the last reading,
  ///   or shadow mode would have freed it.
  func isShort(
    of limit: PressureCondition.Amount, at level: PressureLevel, credit: ByteCount = .zero
  ) -> Bool {
    budget > .zero && usable(at: level) + credit < limit.bytes(of: budget)
  }

  /// What is available at that level, with the swap that counts.
  func usable(at level: PressureLevel) -> ByteCount { available + countedSwap(at: level) }

  /// The free swap that counts as available. It counts at the levels at which workers are
  /// terminated: the kernel can still swap then, which is better than a termination. `warning`, at
  /// which workers are put to sleep, measures RAM alone: hibernating an idle worker is better than
  /// swapping a busy one.
  private func countedSwap(at level: PressureLevel) -> ByteCount {
    guard policy.memory == .host, level > .warning, let reading = memory.reading else {
      return .zero
    }
    return ByteCount(Int64(Double(reading.swapFree.bytes) * policy.pressure.swapShare))
  }
}

/// Whether a worker can be started without making memory short.
public enum MemoryRoom: Hashable, Sendable {
  /// The worker can be started now.
  case enough
  /// The worker has to wait until more memory is available.
  case notNow
  /// The worker is too large even if it had all of the memory.
  case never
}

extension Engine {
  /// Whether there is room for a worker with this footprint: the pressure is normal, and would
  /// still be normal with the worker.
  public func room(for footprint: ByteCount) -> MemoryRoom {
    // Before the first reading the available memory isn't known.
    guard budget > .zero else { return pressure == .normal ? .enough : .notNow }
    let limits = PressureLevel.allCases.compactMap {
      policy.pressure[$0]?.availableBelow?.bytes(of: budget)
    }
    if footprint + (limits.min() ?? .zero) > budget { return .never }
    guard pressure == .normal else { return .notNow }
    // If the worker alone would raise the first levels, the last one counts.
    let roomy = limits.filter { footprint + $0 <= budget }.max() ?? .zero
    return available >= footprint + roomy ? .enough : .notNow
  }
}
