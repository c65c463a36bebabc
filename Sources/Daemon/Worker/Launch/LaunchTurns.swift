import Lifecycle
import Policy

/// Begins launches a few at a time. Each uses a thread and some memory for a moment, and after a hundred at once the heap
/// would keep gaps (0.45 MB, Benchmarks/results/2026-11-22-idle.md). A launch that takes long, because a file system
/// doesn't answer, delays the others by `patience` only. Belongs to the loop's thread.
final class LaunchTurns {
  /// Launches at once.
  static let most = 4
  /// After this time a launch doesn't count any more.
  static let patience = Duration.milliseconds(100)

  private let timers: any Timers
  /// In the order in which they began.
  private var underWay: [(id: WorkerID, since: Instant)] = []
  /// nil: it has begun. A slice would keep what it no longer shows, and with it the worker.
  private var waiting: [(id: WorkerID, begin: () -> Void)?] = []
  private var next = 0
  private var isAdvancing = false
  private var timer: EventLoop.Token?

  init(timers: any Timers) { self.timers = timers }

  deinit { if let timer { timers.cancel(timer) } }

  /// Calls `begin` when it is this launch's turn: at once, unless others are under way.
  func take(_ id: WorkerID, _ begin: @escaping () -> Void) {
    waiting.append((id, begin))
    advance()
  }

  /// The launch has ended.
  func end(_ id: WorkerID) {
    underWay.removeAll { $0.id == id }
    advance()
  }

  private func advance() {
    // A launch may end while it begins.
    guard !isAdvancing else { return }
    isAdvancing = true
    while next < waiting.count {
      let now = timers.now
      underWay.removeAll { now - $0.since >= Self.patience }
      guard underWay.count < Self.most else { break }
      if let launch = takeNext() {
        underWay.append((launch.id, now))
        launch.begin()
      }
    }
    isAdvancing = false
    scheduleNext()
  }

  private func takeNext() -> (id: WorkerID, begin: () -> Void)? {
    defer {
      waiting[next] = nil
      next += 1
      if next == waiting.count { (waiting, next) = ([], 0) }
    }
    return waiting[next]
  }

  private func scheduleNext() {
    if let timer { timers.cancel(timer) }
    timer = nil
    guard next < waiting.count, let first = underWay.first else { return }
    timer = timers.after(Self.patience - (timers.now - first.since)) { [weak self] in
      self?.timer = nil
      self?.advance()
    }
  }
}
