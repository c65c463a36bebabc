import Lifecycle
import Linux
import Policy

/// Limits how many launches run at once.
///
/// Each launch uses a thread and some memory for a moment: after a hundred at once the heap would
/// keep gaps (0.45 MB, Benchmarks/results/2026-11-22-idle.md). If many programs start up at once on
/// few processors, all of them are ready late. Therefore a launch counts until its worker is ready.
/// A worker that starts slowly delays the others by at most 100 ms (`countedTime`), or by at most 3
/// s (`maxCountedTime`) while threads wait for a processor: then one more program would be ready no
/// earlier. Belongs to the loop's thread.
final class LaunchTurns {
  /// After this time a launch doesn't count any more, unless threads wait for a processor.
  static let countedTime = Duration.milliseconds(100)
  /// The interval of checks whether threads still wait. In 100 ms two processors start up four
  /// small programs.
  static let interval = Duration.milliseconds(20)
  /// After this time a launch doesn't count any more in any case.
  static let maxCountedTime = Duration.seconds(3)

  struct Machine {
    /// The maximum number of launches at once.
    var maxLaunches: Int
    /// Whether many threads wait for a processor.
    var isBusy: () -> Bool

    static var local: Machine {
      Machine(maxLaunches: max(4, 2 * onlineProcessors)) {
        // One of these threads is the reader itself. As many threads as there are processors may
        // wait in addition, so that the processors are never idle. Without /proc/loadavg, a launch
        // counts for `countedTime`.
        (RunnableThreads.count() ?? 0) > 2 * onlineProcessors + 1
      }
    }
  }

  private let timers: any Timers
  private let machine: Machine
  /// The launches that count, in the order in which they began.
  private var counted: [(id: WorkerID, since: Instant)] = []
  /// Launches that wait: first those that are wanted, each kind in the order of the requests.
  private var waiting: [(id: WorkerID, isWanted: Bool, begin: () -> Void)] = []
  private var isAdvancing = false
  private let nextCheck: TimedOperation

  init(timers: any Timers, machine: Machine) {
    self.timers = timers
    self.machine = machine
    nextCheck = TimedOperation(timers)
  }

  /// The workers whose launches count.
  var countedWorkers: [WorkerID] { counted.map(\.id) }

  /// Calls `begin` when the launch may begin: at once, unless too many others count.
  ///
  /// - Parameter isWanted: a client or another worker waits for it. Such launches precede those
  ///   that only start automatically.
  func enqueue(_ id: WorkerID, isWanted: Bool, _ begin: @escaping () -> Void) {
    let next = isWanted ? waiting.firstIndex { !$0.isWanted } : nil
    waiting.insert((id, isWanted, begin), at: next ?? waiting.endIndex)
    advance()
  }

  /// The worker is ready, or its launch has failed.
  func end(_ id: WorkerID) {
    counted.removeAll { $0.id == id }
    advance()
  }

  private func advance() {
    // A launch may end while it begins.
    guard !isAdvancing else { return }
    isAdvancing = true
    while !waiting.isEmpty, hasRoom() {
      let launch = waiting.removeFirst()
      counted.append((launch.id, timers.now))
      launch.begin()
    }
    isAdvancing = false
    scheduleNext()
  }

  private func hasRoom() -> Bool {
    let now = timers.now
    counted.removeAll { now - $0.since >= Self.maxCountedTime }
    if counted.count < machine.maxLaunches { return true }
    let recent = counted.filter { now - $0.since < Self.countedTime }
    if recent.count >= machine.maxLaunches || machine.isBusy() { return false }
    counted = recent
    return true
  }

  private func scheduleNext() {
    nextCheck.cancel()
    if waiting.isEmpty { return }
    let now = timers.now
    let recent = counted.filter { now - $0.since < Self.countedTime }
    let isFull = recent.count >= machine.maxLaunches
    let wait = isFull ? recent.first.map { Self.countedTime - (now - $0.since) } : nil
    nextCheck.wait(wait ?? Self.interval) { [unowned self] in advance() }
  }
}
