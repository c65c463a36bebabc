import Control
import Journal
import Lifecycle
import Linux
import Policy

extension WorkerCounters {
  /// - Parameter written: the bytes that were written to the worker's images.
  init(_ tally: WorkerTally, written: Int64) {
    self.init()
    launches = tally.launches
    failedLaunches = tally.failedLaunches
    suspensions = tally.suspensions
    hibernations = tally.hibernations
    wakes = tally.wakes
    resumes = tally.resumes
    resumeSeconds = Double(tally.resumeNanoseconds) / 1e9
    trims = tally.trims
    trimmed = tally.trimmed
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
  init(_ counts: RunCounts, _ engine: Engine, at now: Instant) {
    self.init(upSeconds: counts.upSeconds(at: now))
    cpuSeconds = Double(Clocks.processorTime) / 1e9
    // Without /proc the number isn't known.
    let bytes = residentMemory(of: CurrentProcess.pid).all
    resident = bytes == 0 ? nil : Int64(clamping: bytes)
    let memory = engine.memoryReading
    someStall = memory?.someStall
    fullStall = memory?.fullStall
    swapFree = memory?.swapFree.bytes
    if let disk = engine.imageDisk {
      imageDisk = ImageDisk(
        images: disk.reading.images.bytes, budget: engine.policy.hibernate.disk.budget.bytes,
        free: disk.reading.free.bytes, total: disk.reading.total.bytes, least: disk.minFree.bytes)
    }
    wakeTimes = counts.wakeTimes
    jetsamReports = counts.jetsamReports
  }
}
