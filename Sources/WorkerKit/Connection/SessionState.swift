import WorkerProtocol

/// What the worker has sent and what still holds. It is sent again to each later daemon.
struct SessionState {
  var isReady = false
  var holds = false
  /// True if the worker has ever held: the end of the hold may have been lost with a connection.
  var hasHeld = false
  var status: String?
  var snapshot: WorkerMessage.Snapshot?
  var tasks: [(name: String, deadline: ContinuousClock.Instant?)] = []
  /// The tasks that have ended, the latest last. Their ends may have been lost with a connection,
  /// and the daemon would keep the worker awake for them.
  var endedTasks: [String] = []
  /// The heap whose memory was offered. The reference keeps its descriptor open.
  var purgeable: PurgeableHeap?

  private static let maxEndedTasks = 64

  mutating func recordEnd(ofTask name: String) {
    tasks.removeAll { $0.name == name }
    endedTasks.removeAll { $0 == name }
    endedTasks.append(name)
    if endedTasks.count > Self.maxEndedTasks { endedTasks.removeFirst() }
  }

  /// Appends the first lines of a new connection.
  func greet(_ outbox: inout Outbox) {
    outbox.append(WorkerMessage.hello(version: WorkerProtocol.version).line)
    if isReady { outbox.append(WorkerMessage.ready.line) }
    if hasHeld { outbox.append(WorkerMessage.hold(holds).line) }
    for task in endedTasks { outbox.append(WorkerMessage.endTask(name: task).line) }
    let now = ContinuousClock.now
    for task in tasks {
      let remaining = task.deadline.map { max(0, ($0 - now) / .seconds(1)) }
      outbox.append(WorkerMessage.beginTask(name: task.name, limitSeconds: remaining).line)
    }
    if let status { outbox.append(WorkerMessage.status(status).line) }
    if let snapshot { outbox.append(WorkerMessage.snapshot(snapshot).line) }
    if let purgeable {
      outbox.append(WorkerMessage.purgeable.line, descriptor: purgeable.file)
    }
  }
}
