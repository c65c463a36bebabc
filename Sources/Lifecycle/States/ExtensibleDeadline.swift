import Policy

// EXTEND_TIMEOUT_USEC (sd_notify(3)): a worker that is at work asks for more time. It gets more, up
// to `watchdog.max_extension` in all, but not if it is terminated for lack of memory.

/// A deadline that may move later.
struct ExtensibleDeadline: Codable, Hashable, Sendable {
  /// The policy's deadline.
  private(set) var original: Instant
  /// The deadline with all extensions.
  private(set) var until: Instant

  init(_ original: Instant) { (self.original, until) = (original, original) }

  /// Moves the deadline to `wanted` at most. It never moves earlier, and never by more than the
  /// policy's limit.
  mutating func extend(to wanted: Instant, atMostBy limit: Duration) {
    until = max(until, min(wanted, original + limit))
  }

  /// Moves the deadline by the time that the machine slept.
  mutating func postpone(by time: Duration) {
    original.postpone(by: time)
    until.postpone(by: time)
  }
}

extension Engine {
  mutating func recordExtension(_ index: Int, _ time: Duration) {
    let limit = workers[index].policy.watchdog.maxExtension
    let wanted = now + time
    switch workers[index].state {
    case .launching:
      // A process that asks for time has been started, though that may be reported a moment later.
      recordLaunched(index)
      workers[index].run.readyBy?.extend(to: wanted, atMostBy: limit)
    case .foreground, .background:
      workers[index].run.unanswered?.until.extend(to: wanted, atMostBy: limit)
      guard workers[index].run.shed?.isFinishing == false else { return }
      workers[index].run.shed?.deadline.extend(to: wanted, atMostBy: limit)
    case .terminating:
      if case .pressure? = workers[index].run.ending?.cause { return }
      workers[index].run.ending?.extend(to: wanted, atMostBy: limit)
    default: break
    }
  }
}

extension Ending {
  mutating func extend(to wanted: Instant, atMostBy limit: Duration) {
    guard var deadline = killBy else { return }
    deadline.extend(to: wanted, atMostBy: limit)
    killBy = deadline
    giveUpAt = deadline.until + Ending.timeout
  }
}
