import CLinux
import Glibc

/// The last run of a thread, from the scheduler's data (`/proc/PID/task/TID/sched`).
struct ThreadRun: Hashable {
  /// The value `se.exec_start` in nanoseconds of the scheduler's clock of `processor`. If the
  /// thread waits, this is when it began to wait.
  var lastRan: Int64
  var processor: Int32
  /// The number of times that it has begun to wait.
  var waits: UInt64
  /// True if it waited, and didn't run, at a moment after that.
  var isWaiting = false
}

extension ThreadRun {
  /// Reads the data of a thread. The result is nil if the kernel doesn't have the file (no
  /// CONFIG_SCHED_DEBUG before Linux 6.15), or hides it.
  static func read(thread: Int32, of pid: Int32) -> ThreadRun? {
    // A thread that has ended has no such file.
    guard let bytes = try? readFile("/proc/\(pid)/task/\(thread)/sched"),
      let stat = try? ProcessStat.read(thread: thread, of: pid), let processor = stat.processor,
      var run = ThreadRun(sched: bytes, processor: processor)
    else { return nil }
    run.isWaiting = stat.state == .sleeping
    return run
  }

  init?(sched bytes: [UInt8], processor: Int32) {
    var lastRan: Int64?
    var waits: UInt64?
    for line in bytes.lines() {
      let fields = line.words()
      guard fields.count == 3, fields[1].elementsEqual(":".utf8) else { continue }
      if fields[0].elementsEqual("se.exec_start".utf8) { lastRan = Self.nanoseconds(fields[2]) }
      if fields[0].elementsEqual("nr_voluntary_switches".utf8) { waits = fields[2].number() }
    }
    // The value is 0 while the thread is moved to another processor.
    guard let lastRan, let waits, lastRan > 0 else { return nil }
    self.init(lastRan: lastRan, processor: processor, waits: waits)
  }

  /// Parses a time in milliseconds such as `1878670.759121`.
  private static func nanoseconds(_ text: ArraySlice<UInt8>) -> Int64? {
    let parts = text.split(separator: UInt8(ascii: "."))
    guard parts.count == 2, parts[1].count == 6, let whole: Int64 = parts[0].number(),
      let fraction: Int64 = parts[1].number()
    else { return nil }
    return whole * 1_000_000 + fraction
  }
}

/// Converts the scheduler's clocks, one per processor, to CLOCK_MONOTONIC.
///
/// The clocks start together. Then each loses the time that its processor spends on interrupts, and
/// the time that the host gives to other guests. So times of two processors can't be compared, and
/// a processor's clock is read on that processor: this thread moves there for about 10 µs.
///
/// All errors make a time later than it was, so no timeout that is computed from it ends too early.
struct ProcessorClocks {
  private var offsets: [Int32: Int64?] = [:]

  /// Returns CLOCK_MONOTONIC at a time of the clock of `processor`; nil if this thread may not run
  /// there.
  mutating func monotonic(_ time: Int64, of processor: Int32) -> Int64? {
    let offset: Int64?
    if let cached = offsets[processor] {
      offset = cached
    } else {
      offset = Self.measure(processor)
      offsets[processor] = offset
    }
    return offset.map { time + $0 }
  }

  private static func measure(_ processor: Int32) -> Int64? {
    // The mask has one bit for each of 8,192 processors, the maximum for which Linux can be built.
    var before = [UInt8](repeating: 0, count: 1024)
    guard clinux_run_on_processor(processor, &before, Int64(before.count)) == 0 else { return nil }
    defer { _ = clinux_run_on_processors(before, Int64(before.count)) }
    // The scheduler may let another thread run in the middle of a measurement, which makes the
    // result too late by milliseconds. So an interrupted measurement is repeated, and the earliest
    // result counts.
    var best: Int64?
    for _ in 1...4 {
      // The scheduler records this thread's time when it begins to run.
      var pause = timespec(tv_sec: 0, tv_nsec: 1)
      nanosleep(&pause, nil)
      let began = Clocks.monotonic
      // A kernel without CONFIG_SCHED_DEBUG has no such file.
      guard let bytes = try? readFile("/proc/thread-self/sched"),
        let run = ThreadRun(sched: bytes, processor: processor)
      else { return best }
      let ended = Clocks.monotonic
      best = min(best ?? .max, ended - run.lastRan)
      if ended - began < interrupted { break }
    }
    return best
  }

  /// A measurement of this length in nanoseconds counts as interrupted. Reading the thread's own
  /// file takes about 20 µs; an interruption lasts a millisecond or more.
  private static let interrupted: Int64 = 500_000
}
