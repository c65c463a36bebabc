import Glibc
import Linux

/// What has come to a worker and it hasn't taken.
struct UnreadInput: Hashable, Sendable {
  /// As poll(2) has it.
  var events: Int16
  /// Bytes or connections; nil where the amount is unknown. For a connection over TCP it is all that it has
  /// ever received, so that other data of the same length shows.
  var amount: Int64?

  /// nil: nothing has.
  init?(_ input: WorkerInput) {
    let events = input.duplicate.inputEvents
    if events == 0 { return nil }
    self.events = events
    guard input.facts != nil else {
      amount = input.duplicate.unreadBytes
      return
    }
    // nil: no socket.
    let facts = try? SocketFacts.read(input.duplicate)
    amount =
      facts?.traffic.map { Int64(truncatingIfNeeded: $0.received) } ?? facts?.unread
  }

  /// More has come since the other look, or a hang-up.
  func hasMore(than earlier: UnreadInput) -> Bool {
    if events & ~earlier.events != 0 { return true }
    guard let amount, let before = earlier.amount else { return false }
    return amount > before
  }
}

/// What was unread when a worker fell asleep. It was woken for that once. What it still hasn't read by the next
/// time, it leaves there by choice (a client that reads only now and then, a socket that it will never read),
/// and must not be woken for it again and again.
public struct LeftUnread: Sendable {
  var unread: [InputKey: UnreadInput] = [:]

  public init() {}

  /// The part that a running worker still leaves unread: there now, and for all of `patience`, with nothing
  /// added. Takes no time where there is none. Not on the event loop's thread.
  public func stillIgnored(
    by tree: ProcessTree, ownChannels: Set<String>, patience: Duration = .milliseconds(250)
  ) -> LeftUnread {
    var left = self
    if left.unread.isEmpty { return left }
    let deadline = Deadline(in: patience)
    let inputs = WorkerInputs(of: tree, ownChannels: ownChannels)
    while true {
      var now: [InputKey: UnreadInput] = [:]
      _ = inputs.forEach(unreadOnly: true, where: { left.unread[$0] != nil }) { input in
        guard let before = left.unread[input.key], let unread = UnreadInput(input) else { return }
        if !unread.hasMore(than: before) { now[input.key] = unread }
      }
      left.unread = now
      if now.isEmpty || deadline.hasPassed { return left }
      pauseThread(for: .milliseconds(10))
    }
  }
}
