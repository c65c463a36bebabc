import CWorkerKit
import Synchronization
import WorkerProtocol

/// This process, as its Dormouse daemon knows it.
///
/// ```swift
/// Worker.shared.connect(delegate: journal)
/// ```
///
/// Without a daemon (there is no `DORMOUSE_WORKER_SOCKET` in the environment) everything works, and nothing is
/// sent: the same program runs under Dormouse and without it. All methods may be called from any thread or
/// task, before `connect` as well, and never wait for the daemon.
public final class Worker: Sendable {
  /// The worker of this process.
  public static let shared = Worker(socketPath: environment(WorkerProtocol.socketVariable))

  /// The deadline for the event that is being handled: set while methods of the delegate, and closures that
  /// were given to `onMemoryWarning` and `onEnterBackground`, run. `nil` if the daemon waits for no answer.
  ///
  /// While the worker is stopped its deadlines stand still, so it may really be later.
  @TaskLocal public static var deadline: ContinuousClock.Instant?

  /// The state that the daemon has reported to this worker.
  private struct Reported {
    var pressure = PressureLevel.normal
    var isConnecting = false
    var snapshotProvider: (@Sendable () async -> Snapshot?)?
  }

  let listeners = Listeners()
  let connection: Connection?
  let tasks: OpenTasks
  let purgeable = LazyPurgeableHeap()
  private let reported = Mutex(Reported())

  /// - Parameter socketPath: of the daemon; `nil`: there is none. For tests, and processes that get the path in
  ///   another way; all others use `shared`.
  public init(socketPath: String?) {
    let connection = socketPath.flatMap { Connection(path: $0) }
    self.connection = connection
    tasks = OpenTasks(connection)
    listeners.subscribers.add(purgeable)
  }

  deinit { connection?.stop() }

  /// Connects to the daemon, and stays connected: after the daemon's end to the next one.
  ///
  /// - Parameter delegate: gets all events from now on, instead of the one before; kept alive. `nil`: the
  ///   delegate before stays.
  public func connect(delegate: (any WorkerDelegate)? = nil) {
    if let delegate { listeners.setDelegate(delegate) }
    let isFirst = reported.withLock { reported in
      defer { reported.isConnecting = true }
      return !reported.isConnecting
    }
    guard isFirst else { return }
    workerkit_keep_heap_small()
    if self === Worker.shared { workerkit_at_exit { Worker.shared.tasks.report("exit") } }
    guard let connection else { return }
    let started = connection.start { [weak self] incoming in self?.receive(incoming) }
    if !started { reported.withLock { $0.isConnecting = false } }
  }

  /// The worker is connected to a daemon.
  public var isConnected: Bool { connection?.isConnected ?? false }

  /// The machine's pressure level, as last reported.
  public var pressure: PressureLevel { reported.withLock { $0.pressure } }

  /// All events, for a `for await` loop.
  public var events: WorkerEvents { WorkerEvents(listeners: listeners) }

  static func environment(_ name: String) -> String? {
    guard let value = workerkit_environment(name) else { return nil }
    defer { workerkit_release(value) }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }
}

// MARK: - Messages of the daemon

extension Worker {
  private func receive(_ incoming: Connection.Incoming) {
    switch incoming {
    case .ended: purgeable.daemonIsGone()
    case .message(let message, let connection): receive(message, connection)
    }
  }

  private func receive(_ message: DaemonMessage, _ connection: Int) {
    switch message {
    case .hello(_, _, _, let pressure), .pressure(let pressure): changePressure(pressure)
    case .didEnterForeground: listeners.deliver(.didEnterForeground)
    case .didResume(_, let asleep, let cause):
      listeners.deliver(
        .didResume(Resumption(asleep: .seconds(max(0, min(asleep, 1e12))), cause: cause)))
    case .request(let id, let seconds, let request):
      let deadline = ContinuousClock.now + .seconds(max(0, min(seconds, 1e9)))
      handle(request, deadline) { [daemon = self.connection] in
        daemon?.answer(.done(id: id), connection: connection)
      }
    case .error(let message): report("the daemon didn't understand a line: \(message)")
    }
  }

  private func changePressure(_ name: String) {
    guard let level = PressureLevel(rawValue: name) else { return }
    let isNew = reported.withLock { reported in
      defer { reported.pressure = level }
      return reported.pressure != level
    }
    if isNew { listeners.deliver(.pressureChanged(level)) }
  }

  private func handle(
    _ request: DaemonMessage.Request, _ deadline: ContinuousClock.Instant,
    answer: @escaping @Sendable () -> Void
  ) {
    switch request {
    case .didEnterBackground:
      listeners.deliver(.didEnterBackground, deadline: deadline) { [weak self] in
        await self?.takeSnapshot()
        workerkit_trim()
        answer()
      }
    case .memoryWarning(let level, let footprint):
      let warning = MemoryWarning(
        level: PressureLevel(rawValue: level) ?? .warning, footprintBytes: footprint)
      listeners.deliver(.didReceiveMemoryWarning(warning), deadline: deadline) {
        // The allocator may keep memory that was freed, which then isn't free for the machine.
        workerkit_trim()
        answer()
      }
    case .willSuspend: listeners.deliver(.willSuspend, deadline: deadline, whenHandled: answer)
    case .willTerminate(let reason):
      listeners.deliver(.willTerminate(reason: reason), deadline: deadline) { [tasks] in
        tasks.report("termination")
        answer()
      }
    case .taskExpired(let name):
      Task(priority: .high) { [tasks] in
        await Worker.$deadline.withValue(deadline) { await tasks.expire(name) }
        answer()
      }
    }
  }

  private func takeSnapshot() async {
    guard let provider = reported.withLock({ $0.snapshotProvider }),
      let snapshot = await provider()
    else { return }
    setSnapshot(snapshot)
  }

  /// Sets a closure that makes a snapshot whenever the worker has entered the background, before the daemon
  /// gets its answer. One provider at a time; `nil` removes it.
  public func setSnapshotProvider(_ provider: (@Sendable () async -> Snapshot?)?) {
    let former = reported.withLock { reported in
      defer { reported.snapshotProvider = provider }
      return reported.snapshotProvider
    }
    // Its captured objects are released outside of the lock.
    withExtendedLifetime(former) {}
  }

  func report(_ text: String) {
    let line = Array("WorkerKit: \(text)\n".utf8)
    line.withUnsafeBytes { workerkit_print_error($0.baseAddress, Int64($0.count)) }
  }
}
