import Linux
import Synchronization

/// Posts messages to the loop's thread.
///
/// It uses no lock. On a busy machine, a thread may lose its processor for 100 ms at any moment,
/// and with a lock the loop would wait for a thread that loses it while it posts.
final class Mailbox<Receiver>: Sendable {
  typealias Message = @Sendable (Receiver) -> Void

  private struct Entry: Sendable {
    var message: Message
    var label: TurnCheck.Label
  }

  /// A message, and a reference to the one that was posted before it.
  private final class Node: Sendable {
    let entry: Entry
    // Safe: the posting thread writes this before the release store that publishes the node. The
    // thread that has taken the whole list with an acquiring exchange reads it.
    nonisolated(unsafe) var before: Unmanaged<Node>?

    init(_ entry: Entry) { self.entry = entry }
  }

  /// The message that was posted last; it is retained.
  private let last = Atomic<Unmanaged<Node>?>(nil)
  private let counter: EventCounter

  init() throws(SystemCallError) { counter = try EventCounter() }

  deinit { _ = removeAll() }

  /// Readable when there are messages.
  var descriptor: Descriptor { counter.descriptor }

  /// Posts a message. May be called from any thread.
  func post(
    file: StaticString = #fileID, line: UInt = #line, _ message: @escaping Message
  ) {
    let node = Node(Entry(message: message, label: TurnCheck.Label(file: file, line: line)))
    let new = Unmanaged.passRetained(node)
    var before = last.load(ordering: .relaxed)
    while true {
      node.before = before
      let (isPosted, current) = last.weakCompareExchange(
        expected: before, desired: new, successOrdering: .releasing, failureOrdering: .relaxed)
      if isPosted { break }
      before = current
    }
    counter.signal()
  }

  /// Handles all messages. Called on the receiver's thread.
  func drain(_ receiver: Receiver, on loop: any Timers) {
    counter.clear()
    for entry in removeAll() {
      loop.step("\(entry.label)") { entry.message(receiver) }
      loop.checkpoint()
    }
  }

  /// Removes all messages, and returns them with the earliest first.
  private func removeAll() -> [Entry] {
    var entries: [Entry] = []
    // The list is taken as a whole, so a node that is taken can't be posted again meanwhile (no ABA
    // problem).
    var next = last.exchange(nil, ordering: .acquiring)
    while let node = next?.takeRetainedValue() {
      entries.append(node.entry)
      next = node.before
    }
    entries.reverse()
    return entries
  }
}
