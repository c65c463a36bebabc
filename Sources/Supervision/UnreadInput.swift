import Glibc
import Linux

/// What has come to a worker and it hasn't taken.
struct UnreadInput: Hashable, Sendable {
  /// As poll(2) has it.
  var events: Int16
  /// Bytes, or connections; nil where that can't be told.
  var amount: Int64?

  /// nil: nothing has.
  init?(_ input: WorkerInput) {
    let events = input.duplicate.inputEvents
    if events == 0 { return nil }
    self.events = events
    if input.facts == nil {
      amount = input.duplicate.unreadBytes
    } else {
      amount = (try? SocketFacts.read(input.duplicate))?.unread
    }
  }

  /// More has come since the other look, or a hang-up.
  func hasMore(than earlier: UnreadInput) -> Bool {
    if events & ~earlier.events != 0 { return true }
    guard let amount, let before = earlier.amount else { return false }
    return amount > before
  }
}

/// What a running worker leaves unread although it could read: a pool whose workers are all taken,
/// a client that looks when it likes. It must not be woken for that for ever, so this is looked for
/// before it is frozen, and compared with what is unread afterwards.
public struct IgnoredInput: Sendable {
  var unread: [InputKey: UnreadInput] = [:]

  public init() {}

  /// Only what stays unread for `patience` counts as ignored; where nothing is unread, or not for
  /// long, it doesn't take that time. Not on the event loop's thread.
  public init(
    of tree: ProcessTree, ownChannels: Set<String>, patience: Duration = .milliseconds(250)
  ) {
    let deadline = Deadline(in: patience)
    let inputs = WorkerInputs(of: tree, ownChannels: ownChannels)
    var wanted: Set<InputKey>?
    while true {
      unread = [:]
      _ = inputs.forEach(where: { wanted?.contains($0) ?? true }) { input in
        unread[input.key] = UnreadInput(input)
      }
      if unread.isEmpty || deadline.hasPassed { return }
      wanted = Set(unread.keys)
      usleep(10_000)
    }
  }
}
