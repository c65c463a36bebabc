import Control
import Journal
import Lifecycle
import Linux
import Policy
import PolicyFile

/// Records and reports all that happens: in the journal, in the counts for `dormouse report`, and
/// to the clients that follow (`dormouse events -f`). It only observes: the engine and the daemon
/// do the same with and without it.
final class Chronicle: EngineObserver {
  /// nil if the configuration turns the journal off.
  private let journal: JournalWriter?
  let days: DayKeeper
  /// The counts since the daemon's start.
  let counts = RunCounts()
  /// The uses of workers, with those under earlier daemons.
  let uses: UseKeeper
  private var phase: DaemonPhase?
  private let queue: WorkQueue
  private var formatter = EventFormatter()
  private var observers: [Observer: (Notice, EventRecord) -> Void] = [:]

  /// What gets all events: the commands of `on:`, or the clients that follow.
  enum Observer { case hooks, clients }

  /// - Parameter directory: the journal's directory, if the configuration names none.
  init(
    _ configuration: JournalConfiguration, version: String, directory: String, reports: String,
    queue: WorkQueue = WorkQueue(name: "dormouse-jrnl"), log: @escaping DayKeeper.Log
  ) throws(StartError) {
    self.queue = queue
    journal =
      configuration.enabled
      ? try JournalWriter(
        configuration, directory: configuration.path ?? directory, version: version, queue: queue,
        log: log) : nil
    days = DayKeeper(directory: reports, queue: queue, log: log)
    uses = UseKeeper(directory: reports, queue: queue, log: log)
  }

  func begin(_ engine: Engine, at now: Instant, phase: DaemonPhase? = nil) {
    self.phase = phase
    journal?.begin(engine, at: now)
    days.begin(engine, at: now)
    uses.begin(at: now)
  }

  /// Records an event that the engine has handled.
  func handled(
    _ event: Event, directives: [Directive], engine: Engine, at now: Instant
  ) {
    journal?.record(event, directives: directives, engine: engine, at: now)
    days.record(event, directives: directives, engine: engine, at: now)
    counts.record(event, directives: directives)
    // A daemon that ends wakes the workers that it leaves, and that is no use of them.
    if phase?.isClosing != true { uses.record(event, at: now) }
    guard isFollowed else { return }
    for notice in formatter.notices(of: event, directives, engine, at: now) { publish(notice) }
  }

  func didSetPolicy(_ policy: LifecyclePolicy, at now: Instant) {
    journal?.record(policy, at: now)
    if isFollowed { publish(formatter.notice(ofPolicy: policy, at: now)) }
  }

  private func publish(_ notice: Notice) {
    let record = EventRecord(notice, wall: JournalWriter.wall())
    for observe in observers.values { observe(notice, record) }
  }

  var isFollowed: Bool { !observers.isEmpty }

  /// Sets the function that gets all events for this observer; nil for none.
  func observe(as observer: Observer, _ action: ((Notice, EventRecord) -> Void)?) {
    if !isFollowed { formatter = EventFormatter() }
    observers[observer] = action
  }

  /// Begins to write everything until now to the files. `done` is called on another thread when it
  /// is written.
  func save(at now: Instant, then done: @escaping @Sendable () -> Void) -> JournalLocation {
    journal?.flush(at: now)
    days.save(at: now)
    uses.save(at: now)
    queue.submit(done)
    return JournalLocation(
      directory: journal?.directory.path, reports: days.store.directory, run: journal?.run,
      at: now.nanoseconds)
  }

  /// Waits, when the daemon ends, until everything is in the files.
  ///
  /// - Returns: false if the disk took longer than `limit`.
  @discardableResult
  func close(at now: Instant, within limit: Duration = .seconds(10)) -> Bool {
    _ = save(at: now) {}
    return queue.drain(within: limit)
  }
}

extension EventRecord {
  /// An event in the form that clients get, and that `dormouse events` makes from the journal.
  public init(_ notice: Notice, wall: WallTime) {
    self.init(time: wall.text, kind: notice.kind.rawValue, text: notice.text)
    worker = notice.worker?.name
    from = notice.from?.rawValue
    to = notice.to?.rawValue
    code = notice.cause?.code
    level = notice.level?.name
    occasion = notice.occasion?.rawValue
    seconds = notice.took?.seconds
    freed = notice.freed?.bytes
  }
}
