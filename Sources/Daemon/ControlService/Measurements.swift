import Control
import Glibc
import Journal
import Lifecycle
import Linux
import Policy

extension WorkerCounters {
  /// - Parameter written: bytes, to its images.
  init(_ tally: WorkerTally, written: Int64) {
    self.init()
    launches = tally.launches
    failedLaunches = tally.failedLaunches
    suspensions = tally.suspensions
    hibernations = tally.hibernations
    wakes = tally.wakes
    resumes = tally.resumes
    resumeSeconds = Double(tally.resumeNanoseconds) / 1e9
    warnings = tally.warnings
    freed = tally.freed
    self.written = written
    footprintByteSeconds = tally.byteSeconds
    ends.memory = tally.memoryTerminations
    ends.watchdog = tally.watchdogTerminations
    ends.requested = tally.stops
    ends.completed = tally.exits
    ends.crashed = tally.crashes
    states = WorkerState.allCases.compactMap { state in
      tally.nanoseconds[state.rawValue].map {
        StateTime(state: state.rawValue, seconds: Double($0) / 1e9)
      }
    }
  }
}

extension DaemonMeasurements {
  /// - Parameter stall: percent.
  init(
    _ counts: RunCounts, _ engine: Engine, stall: (some: Double, full: Double)?, at now: Instant
  ) {
    self.init(upSeconds: counts.upSeconds(at: now))
    cpuSeconds = Self.ownProcessorTime()
    resident = Self.ownResidentBytes()
    someStall = stall?.some
    fullStall = stall?.full
    swapFree = engine.memoryReading?.swapFree.bytes
    if let disk = engine.imageDisk {
      imageDisk = ImageDisk(
        images: disk.reading.images.bytes, budget: engine.policy.hibernate.disk.budget.bytes,
        free: disk.reading.free.bytes, total: disk.reading.total.bytes, least: disk.least.bytes)
    }
    wakeTimes = counts.wakeTimes
    jetsamReports = counts.jetsamReports
  }

  private static func ownProcessorTime() -> Double? {
    var time = timespec()
    guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return nil }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  private static func ownResidentBytes() -> Int64? {
    // Without /proc it isn't known.
    guard let text = try? readText("/proc/self/statm") else { return nil }
    let fields = text.split(separator: " ")
    return fields.count > 1 ? Int64(fields[1]).map { $0 * Int64(getpagesize()) } : nil
  }
}
