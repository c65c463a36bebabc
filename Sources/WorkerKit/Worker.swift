import CWorkerKit
import Synchronization
import WorkerProtocol

/// This process as a worker of a Dormouse daemon.
///
/// ```swift
/// Worker.shared.connect(delegate: journal)
/// ```
///
/// The same program runs with and without Dormouse. Without a daemon (`DORMOUSE_WORKER_SOCKET`
/// isn't in the environment) all calls work, and nothing is sent. All methods may be called from
/// any thread or task, also before `connect`, and never wait for the daemon.
public final class Worker: Sendable {
  /// The worker of this process.
  public static let shared = Worker(socketPath: environment(WorkerProtocol.socketVariable))

  /// The deadline for the event that is being handled, or `nil` if the daemon doesn't wait for an
  /// answer.
  ///
  /// It is set while methods of the delegate run, and closures given to `onMemoryWarning`,
  /// `onEnterBackground` and `onExpiration`. The daemon's deadlines stand still while the worker is
  /// stopped, so the real deadline may be later.
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

  /// Creates a worker for tests, or for a process that gets the socket's path in another way. All
  /// others use `shared`.
  ///
  /// - Parameter socketPath: The path of the daemon's socket. A path that begins with `@` is an
  ///   abstract socket. `nil` means that there is no daemon.
  public init(socketPath: String?) {
    let connection = socketPath.flatMap { Connection(path: $0) }
    self.connection = connection
    tasks = OpenTasks(connection)
    listeners.subscribers.add(purgeable)
  }

  deinit { connection?.stop() }

  /// Connects to the daemon, and stays connected: when the connection ends, it connects to the next
  /// daemon.
  ///
  /// It returns at once. A thread of WorkerKit makes the connection, and tries again each second
  /// while there is no daemon. Further calls only set the delegate.
  ///
  /// - Parameter delegate: Gets all events from now on, instead of the delegate before. The worker
  ///   keeps it alive. With `nil`, the delegate before stays.
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

  /// True while the worker is connected to a daemon.
  public var isConnected: Bool { connection?.isConnected ?? false }

  /// The machine's pressure level that the daemon reported last; `normal` before the first report.
  public var pressure: PressureLevel { reported.withLock { $0.pressure } }

  /// The worker's events, for a `for await` loop. Each loop gets all events from its start on.
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
    case .ended: purgeable.didDisconnect()
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
        await self?.sendSnapshot()
        workerkit_trim()
        answer()
      }
    case .memoryWarning(let level, let footprint):
      let warning = MemoryWarning(
        level: PressureLevel(rawValue: level) ?? .warning, footprintBytes: footprint)
      listeners.deliver(.didReceiveMemoryWarning(warning), deadline: deadline) {
        // The allocator may keep memory that was freed, and then the machine can't use it.
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

  private func sendSnapshot() async {
    guard let provider = reported.withLock({ $0.snapshotProvider }),
      let snapshot = await provider()
    else { return }
    setSnapshot(snapshot)
  }

  /// Sets a closure that makes a snapshot each time the worker has entered the background, before
  /// the daemon gets its answer.
  ///
  /// A worker has one provider; `nil` removes it. If the provider returns `nil`, the snapshot
  /// before stays.
  public func setSnapshotProvider(_ provider: (@Sendable () async -> Snapshot?)?) {
    let former = reported.withLock { reported in
      defer { reported.snapshotProvider = provider }
      return reported.snapshotProvider
    }
    // The former provider's captured objects are released outside of the lock.
    withExtendedLifetime(former) {}
  }

  func report(_ text: String) {
    let line = Array("WorkerKit: \(text)\n".utf8)
    line.withUnsafeBytes { workerkit_print_error($0.baseAddress, Int64($0.count)) }
  }
}
