import Control
import Journal
import Lifecycle
import Policy

/// The commands of `on:` that wait, and when the next one may start. A command may cause the event
/// that starts it: for example, it wakes the worker that was just hibernated. Three limits prevent
/// an endless loop: how many commands run at once, how many wait, and how often one starts for the
/// same event of one worker. No limit makes the daemon wait.
struct HookQueue {
  /// The maximum number of commands that run at once.
  static let maxRunning = 4
  /// The maximum number of commands that wait, for all events together.
  static let maxWaiting = 128
  /// The maximum number of commands that wait for one event of one worker.
  static let maxWaitingPerSubject = 32
  /// The number of commands for one event of one worker that may start at once. After them, one
  /// starts per `interval`.
  static let burst = 10
  static let interval = Duration.seconds(1)

  /// An event of a worker, or of the machine, that starts a command.
  struct Subject: Hashable, CustomStringConvertible {
    var event: Hooks.Event
    var worker: String?

    var description: String { worker.map { "\(event.rawValue) of \($0)" } ?? event.rawValue }
  }

  struct Entry {
    var subject: Subject
    var command: [String]
    /// The event as JSON, for the command's standard input.
    var input: [UInt8]
    var hooks: Hooks
  }

  private var entries: [Entry] = []
  /// For each subject, the time until which its starts so far count: each start counts for one
  /// interval.
  private var paidAt: [Subject: Instant] = [:]
  /// The number of commands that were dropped since the last `drainLosses`.
  private(set) var dropped = 0
  private var lastDropped: Subject?

  /// Adds a command. Returns false, and drops it, if too many wait.
  mutating func add(_ entry: Entry) -> Bool {
    let sameSubject = entries.count { $0.subject == entry.subject }
    guard entries.count < Self.maxWaiting, sameSubject < Self.maxWaitingPerSubject else {
      dropped += 1
      lastDropped = entry.subject
      return false
    }
    entries.append(entry)
    return true
  }

  /// Removes the first command that may start now, and counts its start.
  ///
  /// - Parameter running: how many commands run now.
  mutating func next(at now: Instant, running: Int) -> Entry? {
    guard running < Self.maxRunning,
      let index = entries.firstIndex(where: { start(of: $0.subject, at: now) <= now })
    else { return nil }
    let entry = entries.remove(at: index)
    paidAt = paidAt.filter { $0.value > now }
    paidAt[entry.subject] = max(paidAt[entry.subject] ?? now, now) + Self.interval
    return entry
  }

  /// The earliest time at which a command that waits may start; nil: none can start before a
  /// running one has ended, or none waits.
  func nextStart(at now: Instant, running: Int) -> Instant? {
    guard running < Self.maxRunning else { return nil }
    return entries.map { start(of: $0.subject, at: now) }.min()
  }

  /// Returns a line for the log about the commands that were dropped, and sets their number to 0.
  mutating func drainLosses() -> String {
    defer { dropped = 0 }
    return "\(counted(dropped, "event")) started no command (on): too many wait "
      + "(last: \(lastDropped.map { "\($0)" } ?? "none"))"
  }

  /// When a command of the subject may start.
  private func start(of subject: Subject, at now: Instant) -> Instant {
    guard let paid = paidAt[subject] else { return now }
    return max(now, paid + Self.interval * -(Self.burst - 1))
  }
}

extension Notice {
  /// The names of this event in `on:`.
  var hookEvents: Set<Hooks.Event> {
    var names: Set<Hooks.Event> = [.everything]
    if let name = Hooks.Event(rawValue: kind.rawValue) { names.insert(name) }
    if occasion == .notice { names.insert(.willTerminate) }
    if occasion == .limit { names.insert(.overLimit) }
    if occasion == .leakSuspected { names.insert(.leakSuspected) }
    guard kind == .state, let to else { return names }
    if let name = Hooks.Event(rawValue: to.rawValue) { names.insert(name) }
    if from == .suspended || from == .hibernated, to == .foreground || to == .background {
      names.insert(.woken)
    }
    guard to == .terminated else { return names }
    switch cause {
    case .pressure: names.insert(.terminatedForMemory)
    case .watchdog, .failed: names.formUnion([.crashed, .failed])
    case .exited(let status) where status != .exited(0): names.formUnion([.crashed, .failed])
    default: break
    }
    return names
  }
}
