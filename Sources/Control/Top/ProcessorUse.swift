import Linux

/// The processor time that one worker had used at one moment.
package struct ProcessorReading: Hashable, Sendable {
  /// In nanoseconds of CLOCK_MONOTONIC.
  package var time: Int64
  /// The pid of the worker's first process. Another pid means another run of the worker.
  package var pid: Int32
  package var used: Used

  package enum Used: Hashable, Sendable {
    /// The microseconds that the kernel counted for its cgroup.
    case group(UInt64)
    /// The nanoseconds of each process that hasn't ended.
    case processes([ProcessIdentity: UInt64])
  }

  package init(time: Int64, pid: Int32, used: Used) {
    self.time = time
    self.pid = pid
    self.used = used
  }
}

/// The processor use of each worker, from two readings. 100 % is one processor.
package struct ProcessorUse: Sendable {
  private var last: [String: ProcessorReading] = [:]
  /// The use in percent, by worker. A worker that has been read only once isn't in it.
  package private(set) var percent: [String: Double] = [:]

  package init() {}

  package mutating func update(_ readings: [String: ProcessorReading]) {
    var percent: [String: Double] = [:]
    for (name, reading) in readings {
      guard let before = last[name] else { continue }
      // Right after the last reading, the difference is too small for a percentage.
      if reading.time - before.time < Self.minInterval {
        percent[name] = self.percent[name]
      } else {
        percent[name] = Self.percent(from: before, to: reading)
      }
    }
    self.percent = percent
    for (name, reading) in readings {
      if let before = last[name], reading.pid == before.pid,
        reading.time - before.time < Self.minInterval
      {
        continue
      }
      last[name] = reading
    }
    last = last.filter { readings[$0.key] != nil }
  }

  /// The minimum time between two readings in nanoseconds: the kernel counts some times in steps of
  /// 10 ms.
  private static let minInterval: Int64 = 100_000_000

  private static func percent(
    from before: ProcessorReading, to now: ProcessorReading
  ) -> Double? {
    guard now.pid == before.pid else { return nil }
    let nanoseconds: UInt64
    switch (before.used, now.used) {
    case (.group(let old), .group(let new)):
      guard new >= old else { return nil }
      nanoseconds = (new - old) &* 1000
    case (.processes(let old), .processes(let new)):
      // A process that wasn't in the last reading has been forked since, and all of its time is
      // new.
      nanoseconds = new.reduce(0) { sum, entry in
        let past = old[entry.key] ?? 0
        return sum &+ (entry.value > past ? entry.value - past : 0)
      }
    default: return nil
    }
    return Double(nanoseconds) / Double(now.time - before.time) * 100
  }
}
