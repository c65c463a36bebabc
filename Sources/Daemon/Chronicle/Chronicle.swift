import Control
import Journal
import Lifecycle
import Linux
import Policy
import PolicyFile

/// Keeps and reports all that happens: the journal, the counts for `dormouse report`, and the clients that
/// follow (`dormouse events -f`). It only listens; the engine and the daemon do the same with and without it.
final class Chronicle: EngineObserver {
  /// `nil`: the configuration wants none.
  private let journal: JournalWriter?
  private let days: DayKeeper
  private let queue = WorkQueue(name: "dormouse-jrnl")
  private var followers: [Follower] = []
  private var narrator = Narrator()

  /// A client that follows all events, or those of one worker.
  private struct Follower {
    var worker: String?
    /// `false`: the client has disconnected.
    var send: (EventRecord) -> Bool
  }

  init(settings: DaemonSettings, state: StateDirectory, log: DaemonLog) throws(StartError) {
    let configuration = settings.configuration.journal
    journal =
      configuration.enabled
      ? try JournalWriter(
        configuration, directory: configuration.path ?? state.journal, version: settings.version,
        queue: queue, log: log) : nil
    days = DayKeeper(directory: state.reports, queue: queue, log: log)
  }

  func begin(_ engine: Engine, at now: Instant) {
    journal?.begin(engine, at: now)
    days.begin(engine, at: now)
  }

  /// The engine has handled an event.
  func handled(
    _ event: Event, directives: [Directive], engine: Engine, at now: Instant
  ) {
    journal?.record(event, directives: directives, engine: engine, at: now)
    days.record(event, directives: directives, engine: engine, at: now)
    guard !followers.isEmpty else { return }
    for notice in narrator.notices(of: event, directives, engine, at: now) { publish(notice) }
  }

  func record(_ policy: LifecyclePolicy, at now: Instant) {
    journal?.record(policy, at: now)
    if !followers.isEmpty { publish(narrator.notice(ofPolicy: policy, at: now)) }
  }

  private func publish(_ notice: Notice) {
    let record = EventRecord(notice, wall: JournalWriter.wall())
    followers.removeAll { follower in
      if let worker = follower.worker, notice.worker?.name != worker { return false }
      return !follower.send(record)
    }
  }

  func follow(worker: String?, receive: @escaping (EventRecord) -> Bool) {
    if followers.isEmpty { narrator = Narrator() }
    followers.append(Follower(worker: worker, send: receive))
  }

  /// Everything until now is on its way to the files; `done` is called, on another thread, when it
  /// is in them.
  func save(at now: Instant, then done: @escaping @Sendable () -> Void) -> JournalPlace {
    journal?.flush(at: now)
    days.save(at: now)
    queue.submit(done)
    return JournalPlace(
      directory: journal?.directory.path, reports: days.store.directory, run: journal?.run,
      at: now.nanoseconds)
  }

  func close(at now: Instant) {
    journal?.close(at: now)
    days.close(at: now)
  }
}

extension EventRecord {
  /// In the form that clients get, and that `dormouse events` makes from the journal.
  public init(_ notice: Notice, wall: WallTime) {
    self.init(time: wall.text, kind: notice.kind.rawValue, text: notice.text)
    worker = notice.worker?.name
    from = notice.from?.rawValue
    to = notice.to?.rawValue
    level = notice.level?.name
    occasion = notice.occasion?.rawValue
    seconds = notice.took?.seconds
    freed = notice.freed?.bytes
  }
}
