import Linux

/// Input that has arrived for a worker and that it hasn't read.
struct UnreadInput: Hashable, Sendable {
  /// The events as poll(2) returns them.
  var events: Int16
  /// The number of bytes or connections; nil if it is unknown. For a TCP connection it is the
  /// number of bytes that were ever received, so that other data of the same length is noticed.
  var amount: Int64?

  /// Returns nil if there is no unread input.
  init?(_ input: WorkerInput) {
    let events = input.duplicate.inputEvents
    if events == 0 { return nil }
    self.events = events
    guard input.facts != nil else {
      amount = input.duplicate.apart { $0.unreadBytes }
      return
    }
    // It is nil if the descriptor isn't a socket.
    let facts = input.duplicate.apart { try? SocketFacts.read($0) }
    amount =
      facts?.traffic.map { Int64(truncatingIfNeeded: $0.received) } ?? facts?.unread
  }

  /// True if more input, or a hang-up, has arrived since the earlier sample.
  func hasMore(than earlier: UnreadInput) -> Bool {
    if events & ~earlier.events != 0 { return true }
    guard let amount, let before = earlier.amount else { return false }
    return amount > before
  }
}

/// The input that was unread when a worker fell asleep. The worker was woken for it once. If it
/// still hasn't read that input when it falls asleep again, it does so by choice: a client that
/// reads only now and then, or a socket that it never reads. It must not be woken for that input
/// again and again.
public struct UnreadInputBaseline: Sendable {
  var unread: [InputKey: UnreadInput] = [:]

  public init() {}

  /// The part of this input that a running worker still leaves unread: it is unread now and during
  /// all of 250 ms, and nothing is added. The call takes that long if there is unread input, so
  /// don't call it on the event loop's thread.
  public func stillUnread(by tree: ProcessTree, daemonSockets: Set<String>) -> UnreadInputBaseline {
    var left = self
    if left.unread.isEmpty { return left }
    let deadline = Deadline(in: .milliseconds(250))
    let inputs = WorkerInputs(of: tree, daemonSockets: daemonSockets)
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
