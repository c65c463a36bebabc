import Linux
import Policy
import Synchronization

/// The daemon's one loop, on its main thread: descriptors, timers, and messages from the threads
/// that do what takes long.
final class EventLoop {
  typealias Handler = (Epoll.Interest) -> Void

  private let epoll: Epoll
  private let timer: DeadlineTimer
  private var handlers: [UInt64: Handler] = [:]
  private var timers: [(at: Instant, id: UInt64, action: () -> Void)] = []
  private var counter: UInt64 = 0

  /// Names a watched descriptor or a timer, so that it can be called off.
  struct Token: Hashable { fileprivate let id: UInt64 }

  init() throws(SystemCallError) {
    epoll = try Epoll()
    timer = try DeadlineTimer()
    try watch(timer.descriptor, .readable) { [timer] _ in timer.clear() }
  }

  /// Nanoseconds of CLOCK_BOOTTIME: a deadline also passes while the machine sleeps.
  static var now: Instant { Instant(nanoseconds: Clocks.boottime) }

  @discardableResult
  func watch(
    _ descriptor: Descriptor, _ interest: Epoll.Interest, _ handler: @escaping Handler
  ) throws(SystemCallError) -> Token {
    counter += 1
    try epoll.add(descriptor.raw, interest, token: counter)
    handlers[counter] = handler
    return Token(id: counter)
  }

  func change(
    _ descriptor: Descriptor, _ token: Token, to interest: Epoll.Interest
  ) throws(SystemCallError) {
    try epoll.modify(descriptor.raw, interest, token: token.id)
  }

  /// The descriptor must still be open.
  func unwatch(_ descriptor: Descriptor, _ token: Token) {
    epoll.remove(descriptor.raw)
    handlers[token.id] = nil
  }

  @discardableResult
  func at(_ moment: Instant, _ action: @escaping () -> Void) -> Token {
    counter += 1
    let place = timers.firstIndex { $0.at > moment } ?? timers.count
    timers.insert((moment, counter, action), at: place)
    return Token(id: counter)
  }

  @discardableResult
  func after(_ delay: Duration, _ action: @escaping () -> Void) -> Token {
    at(Self.now + delay, action)
  }

  func cancel(_ token: Token) { timers.removeAll { $0.id == token.id } }

  /// Waits once, and calls whoever is concerned. `deadline` ends the wait as well.
  func turn(until deadline: Instant?) throws(SystemCallError) {
    let next = [timers.first?.at, deadline].compactMap { $0 }.min()
    timer.set(next?.nanoseconds)
    for event in try epoll.wait(milliseconds: -1) {
      // A handler that ran before may have called this one off.
      handlers[event.token]?(event.what)
    }
    while let first = timers.first, first.at <= Self.now {
      timers.removeFirst()
      first.action()
    }
  }
}

/// Hands work back to the loop's thread.
final class Mailbox<Receiver>: Sendable {
  typealias Message = @Sendable (Receiver) -> Void

  private let messages = Mutex<[Message]>([])
  private let counter: EventCounter

  init() throws(SystemCallError) { counter = try EventCounter() }

  /// Readable when there are messages.
  var descriptor: Descriptor { counter.descriptor }

  /// From any thread.
  func post(_ message: @escaping Message) {
    messages.withLock { $0.append(message) }
    counter.signal()
  }

  /// On the receiver's thread.
  func drain(_ receiver: Receiver) {
    counter.clear()
    let waiting = messages.withLock { messages in
      defer { messages = [] }
      return messages
    }
    for message in waiting { message(receiver) }
  }
}
