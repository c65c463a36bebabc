/// Passes events on one after the other. Events that occur while one is handled wait; the call that began
/// handles them all, so that nothing recurses, however many there are.
final class EventPump<Event> {
  private var waiting: [Event] = []
  private var next = 0
  private var isPumping = false

  /// No event is being handled, and none waits.
  private(set) var isQuiet = true

  /// - Parameters:
  ///   - handle: one event.
  ///   - whenQuiet: called when no event waits. Events that it sends are handled, and then it is called again.
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
