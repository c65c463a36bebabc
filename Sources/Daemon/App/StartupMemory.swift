import CLinux
import Lifecycle
import Linux

/// Releases, once, the memory that only the start has needed: code (the parsers of arguments and configuration
/// files), freed heap and unused stack. What is used after that stays in memory, where it may be locked. Belongs to the
/// loop's thread.
final class StartupMemory {
  /// The name and state of each worker.
  typealias States = [WorkerID: WorkerState]

  private let timers: any Timers
  private let states: () -> States
  private let finish: () -> Void
  private let release: () -> Void
  private var looks = 0

  private static let interval = Duration.seconds(5)
  /// The start counts as over after this many looks, whatever workers do.
  static let mostLooks = 11

  /// - Parameters:
  ///   - states: of all workers. The start is over when none is being launched, or taken over from an earlier daemon,
  ///     and none has changed since the last look: the first suspensions are part of the start.
  ///   - finish: called once when it is over: does what would come soon after it. Encoding and writing what was
  ///     learned uses 2 MB of code and heap.
  ///   - release: called once, a moment later.
  init(
    _ timers: any Timers, _ states: @escaping () -> States, finish: @escaping () -> Void,
    release: @escaping () -> Void
  ) {
    self.timers = timers
    self.states = states
    self.finish = finish
    self.release = release
  }

  /// Of a daemon, whose memory is locked where that is permitted, and is locked again.
  convenience init(
    timers: any Timers, driver: EngineDriver, workers: WorkerRegistry,
    learned: LearnedMemoryKeeper
  ) {
    let states = {
      States(
        uniqueKeysWithValues: workers.keys.map { ($0, driver.state.state(of: $0) ?? .terminated) })
    }
    self.init(timers, states) {
      learned.save()
    } release: {
      // Locked memory can't be released.
      _ = clinux_unlock_memory()
      dropOwnCode()
      clinux_release_unused_stack()
      clinux_trim_own_memory()
      _ = clinux_lock_memory()
    }
  }

  /// The daemon begins its work: this checks every 5 s whether the start is over. The timer keeps this alive.
  func releaseAfterStart() { lookAgain(after: states()) }

  private func lookAgain(after before: States) {
    timers.after(Self.interval) { self.look(before) }
  }

  private func look(_ before: States) {
    looks += 1
    let now = states()
    let isOver = now == before && !now.values.contains(.launching)
    guard looks >= Self.mostLooks || isOver else { return lookAgain(after: now) }
    finish()
    timers.after(Self.interval) { self.release() }
  }
}
