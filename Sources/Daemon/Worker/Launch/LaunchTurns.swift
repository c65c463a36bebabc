import Lifecycle
import Linux
import Policy

/// Begins launches a few at a time.
///
/// Each launch uses a thread and some memory for a moment, and after a hundred at once the heap would keep gaps (0.45 MB,
/// Benchmarks/results/2026-11-22-idle.md). And programs that start up at once on few processors are all ready late: a
/// turn therefore lasts until the worker is ready. A worker whose start takes long delays the others by `patience`, or
/// while threads wait for a processor by `longest`: then one more program would be ready no earlier. Belongs to the
/// loop's thread.
final class LaunchTurns {
  /// After this time a launch doesn't count any more, unless threads wait for a processor.
  static let patience = Duration.milliseconds(100)
  /// How often it looks whether threads still wait. In 100 ms two processors start up four small programs.
  static let interval = Duration.milliseconds(20)
  /// After this time it doesn't count in any case.
  static let longest = Duration.seconds(3)

  struct Machine {
    /// Launches at once.
    var most: Int
    /// Many threads wait for a processor.
    var isBusy: () -> Bool

    static var own: Machine {
      Machine(most: max(4, 2 * onlineProcessors)) {
        // One is the reader. As many again may wait as there are processors, so that these are never idle. Without
        // /proc/loadavg a turn ends after `patience`.
        (RunnableThreads.count() ?? 0) > 2 * onlineProcessors + 1
      }
    }
  }

  private let timers: any Timers
  private let machine: Machine
  /// In the order in which they began.
  private var underWay: [(id: WorkerID, since: Instant)] = []
  private var wanted = WaitingLaunches()
  private var others = WaitingLaunches()
  private var isAdvancing = false
  private var timer: EventLoop.Token?

  init(timers: any Timers, machine: Machine) {
    self.timers = timers
    self.machine = machine
  }

  deinit { if let timer { timers.cancel(timer) } }

  /// Those whose turn it is.
  var holders: [WorkerID] { underWay.map(\.id) }

  /// Calls `begin` when it is this launch's turn: at once, unless others are under way.
  ///
  /// - Parameter isWanted: a client or another worker waits for it, so it precedes those that only start automatically.
  func take(_ id: WorkerID, isWanted: Bool, _ begin: @escaping () -> Void) {
    if isWanted { wanted.append(id, begin) } else { others.append(id, begin) }
    advance()
  }

  /// The worker is ready, or its launch has failed.
  func end(_ id: WorkerID) {
    underWay.removeAll { $0.id == id }
    advance()
  }

  private func advance() {
    // A launch may end while it begins.
    guard !isAdvancing else { return }
    isAdvancing = true
    while !wanted.isEmpty || !others.isEmpty, hasRoom() {
      if let launch = wanted.takeNext() ?? others.takeNext() {
        underWay.append((launch.id, timers.now))
        launch.begin()
      }
    }
    isAdvancing = false
    scheduleNext()
  }

  private func hasRoom() -> Bool {
    let now = timers.now
    underWay.removeAll { now - $0.since >= Self.longest }
    if underWay.count < machine.most { return true }
    let recent = underWay.filter { now - $0.since < Self.patience }
    if recent.count >= machine.most || machine.isBusy() { return false }
    underWay = recent
    return true
  }

  private func scheduleNext() {
    if let timer { timers.cancel(timer) }
    timer = nil
    guard !wanted.isEmpty || !others.isEmpty else { return }
    let now = timers.now
    let recent = underWay.filter { now - $0.since < Self.patience }
    let isFull = recent.count >= machine.most
    let wait = isFull ? recent.first.map { Self.patience - (now - $0.since) } : nil
    timer = timers.after(wait ?? Self.interval) { [weak self] in
      self?.timer = nil
      self?.advance()
    }
  }
}

/// Launches in the order in which they were requested.
private struct WaitingLaunches {
  /// nil: it has begun. A slice would keep what it no longer shows, and with it the worker.
  private var launches: [(id: WorkerID, begin: () -> Void)?] = []
  private var next = 0

  var isEmpty: Bool { next == launches.count }

  mutating func append(_ id: WorkerID, _ begin: @escaping () -> Void) {
    launches.append((id, begin))
  }

  mutating func takeNext() -> (id: WorkerID, begin: () -> Void)? {
    guard !isEmpty else { return nil }
    defer {
      launches[next] = nil
      next += 1
      if next == launches.count { (launches, next) = ([], 0) }
    }
    return launches[next]
  }
}
