/// Passes on events one after the other. An event that is sent while another one is handled waits
/// in a queue. The first call of `send` handles all of them, so nothing recurses, however many
/// there are.
final class EventPump<Event> {
  private var waiting: [Event] = []
  private var next = 0
  private var isPumping = false

  /// No event is being handled, and none waits.
  private(set) var isQuiet = true

  /// - Parameters:
  ///   - handle: handles one event.
  ///   - whenQuiet: called when no event waits. If it sends events, they are handled, and it is
  ///     called again.
  func send(_ event: Event, handle: (Event) -> Void, whenQuiet: () -> Void) {
    waiting.append(event)
    isQuiet = false
    guard !isPumping else { return }
    isPumping = true
    defer { isPumping = false }
    repeat {
      while next < waiting.count {
        let event = waiting[next]
        next += 1
        handle(event)
      }
      waiting.removeAll(keepingCapacity: true)
      next = 0
      isQuiet = true
      whenQuiet()
    } while !waiting.isEmpty
  }
}
