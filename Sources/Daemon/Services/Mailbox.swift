import Linux
import Synchronization

/// Passes work back to the loop's thread.
///
/// Without a lock: on a busy machine a thread may lose its processor for 100 ms at any moment, and the loop
/// would wait for a thread that loses it while it posts.
final class Mailbox<Receiver>: Sendable {
  typealias Message = @Sendable (Receiver) -> Void

  private struct Entry: Sendable {
    var message: Message
    var file: StaticString
    var line: UInt
  }

  /// One message, and the one that was posted before it.
  private final class Node: Sendable {
    let entry: Entry
    // Safe: it is written by the thread that posts, before the release store that shows the node to others, and
    // read by the one that has taken the whole list with an acquiring exchange.
    nonisolated(unsafe) var before: Unmanaged<Node>?

    init(_ entry: Entry) { self.entry = entry }
  }

  /// The message that was posted last; it is retained.
  private let last = Atomic<Unmanaged<Node>?>(nil)
  private let counter: EventCounter

  init() throws(SystemCallError) { counter = try EventCounter() }

  deinit { _ = takeAll() }

  /// Readable when there are messages.
  var descriptor: Descriptor { counter.descriptor }

  /// From any thread.
  func post(
    file: StaticString = #fileID, line: UInt = #line, _ message: @escaping Message
  ) {
    let node = Node(Entry(message: message, file: file, line: line))
    let new = Unmanaged.passRetained(node)
    var before = last.load(ordering: .relaxed)
    while true {
      node.before = before
      let (isPosted, found) = last.weakCompareExchange(
        expected: before, desired: new, successOrdering: .releasing, failureOrdering: .relaxed)
      if isPosted { break }
      before = found
    }
    counter.signal()
  }

  /// On the receiver's thread.
  func drain(_ receiver: Receiver, on loop: any Timers) {
    counter.clear()
    for entry in takeAll() {
      loop.step("\(TurnCheck.Label(file: entry.file, line: entry.line))") {
        entry.message(receiver)
      }
      loop.checkpoint()
    }
  }

  /// The earliest first.
  private func takeAll() -> [Entry] {
    var entries: [Entry] = []
    // The list as a whole: a node that is taken can't be posted again meanwhile.
    var next = last.exchange(nil, ordering: .acquiring)
    while let node = next?.takeRetainedValue() {
      entries.append(node.entry)
      next = node.before
    }
    entries.reverse()
    return entries
  }
}
