import Policy

/// The commands of `on:` that wait, and when the next one may start. A command may cause the event that starts it
/// (it wakes the worker that was just hibernated), so three limits hold: commands at once, commands that wait, and
/// for each worker's event how often one starts. No limit makes the daemon wait.
struct HookQueue {
  /// Commands at once.
  static let mostRunning = 4
  /// Commands that wait, of all events and of one worker's event.
  static let mostWaiting = 128
  static let mostWaitingOfOne = 32
  /// So many commands of one worker's event start at once, and then one for each `interval`.
  static let burst = 10
  static let interval = Duration.seconds(1)

  /// The event of a worker, or of the machine, that has a command.
  struct Subject: Hashable, CustomStringConvertible {
    var event: Hooks.Event
    var worker: String?

    var description: String { worker.map { "\(event.rawValue) of \($0)" } ?? event.rawValue }
  }

  struct Entry {
    var subject: Subject
    var command: [String]
    /// The event as JSON.
    var input: [UInt8]
    var hooks: Hooks
  }

  private var entries: [Entry] = []
  private var running = 0
  /// When the starts of a subject so far are paid for: each start costs one interval.
  private var paidAt: [Subject: Instant] = [:]

  /// False: too many wait, and it is dropped.
  mutating func add(_ entry: Entry) -> Bool {
    let same = entries.count { $0.subject == entry.subject }
    guard entries.count < Self.mostWaiting, same < Self.mostWaitingOfOne else { return false }
    entries.append(entry)
    return true
  }

  /// The first one that may start now, which counts as running.
  mutating func next(at now: Instant) -> Entry? {
    guard running < Self.mostRunning,
      let place = entries.firstIndex(where: { start(of: $0.subject, at: now) <= now })
    else { return nil }
    let entry = entries.remove(at: place)
    paidAt = paidAt.filter { $0.value > now }
    paidAt[entry.subject] = max(paidAt[entry.subject] ?? now, now) + Self.interval
    running += 1
    return entry
  }

  mutating func hasEnded() { running -= 1 }

  /// When one may start that waits for its time only; nil: none does.
  func nextStart(at now: Instant) -> Instant? {
    guard running < Self.mostRunning else { return nil }
    return entries.map { start(of: $0.subject, at: now) }.min()
  }

  /// When a command of the subject may start.
  private func start(of subject: Subject, at now: Instant) -> Instant {
    guard let paid = paidAt[subject] else { return now }
    return max(now, paid + Self.interval * -(Self.burst - 1))
  }
}
