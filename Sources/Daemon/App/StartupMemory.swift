import CLinux
import Linux

/// Releases, once, the memory that only the start has needed: code (the parsers of arguments and configuration
/// files) and freed heap. What is used after that stays in memory, where it may be locked. Belongs to the loop's
/// thread.
final class StartupMemory {
  private let timers: any Timers
  private let isStarting: () -> Bool
  private let release: () -> Void
  private var looks = 0

  private static let interval = Duration.seconds(5)
  /// The start counts as over after so many looks, even if a worker isn't ready yet.
  static let mostLooks = 12

  /// - Parameters:
  ///   - isStarting: a worker is being launched, or is taken over from an earlier daemon.
  ///   - release: called once.
  init(_ timers: any Timers, _ isStarting: @escaping () -> Bool, release: @escaping () -> Void) {
    self.timers = timers
    self.isStarting = isStarting
    self.release = release
  }

  /// Of a daemon, whose memory is locked where that is permitted, and is locked again.
  convenience init(timers: any Timers, driver: EngineDriver, workers: WorkerRegistry) {
    let isStarting = { workers.keys.contains { driver.state.state(of: $0) == .launching } }
    self.init(timers, isStarting) {
      // Locked memory can't be released.
      _ = clinux_unlock_memory()
      clinux_trim_own_memory()
      dropOwnCode()
      _ = clinux_lock_memory()
    }
  }

  /// The daemon begins its work: looks every 5 s whether the start is over. The timer keeps this alive.
  func releaseAfterStart() {
    timers.after(Self.interval) { self.look() }
  }

  private func look() {
    looks += 1
    guard looks >= Self.mostLooks || !isStarting() else { return releaseAfterStart() }
    release()
  }
}
