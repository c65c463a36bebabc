import Linux
import Policy

/// Identifies a watched descriptor or a timer of a loop, so that it can be cancelled.
package struct LoopToken: Hashable {
  let id: UInt64

  package init(id: UInt64) { self.id = id }
}

/// The daemon's only event loop, on its main thread. It serves descriptors, timers, and messages
/// from the threads that do long work.
final class EventLoop {
  typealias Handler = (Epoll.Interest) -> Void

  private let epoll: Epoll
  private let timer: DeadlineTimer
  private var handlers: [UInt64: (handler: Handler, label: TurnCheck.Label)] = [:]
  private var timers = TimerList<Instant>()
  private var awakeTimers = TimerList<AwakeInstant>()
  private var counter: UInt64 = 0
  private var check: TurnCheck?

  typealias Token = LoopToken

  /// Call this on the thread that will call `turn`.
  init(check: TurnCheck.Settings? = .current()) throws(SystemCallError) {
    epoll = try Epoll()
    timer = try DeadlineTimer()
    self.check = TurnCheck(check)
    try watch(timer.descriptor, .readable) { [timer] _ in timer.clear() }
  }

  /// The time of CLOCK_BOOTTIME in nanoseconds. This clock also runs while the machine sleeps.
  static var now: Instant { Instant(nanoseconds: Clocks.boottime) }

  @discardableResult
  func watch(
    _ descriptor: Descriptor, _ interest: Epoll.Interest, file: StaticString = #fileID,
    line: UInt = #line, _ handler: @escaping Handler
  ) throws(SystemCallError) -> Token {
    counter += 1
    try epoll.add(descriptor.raw, interest, token: counter)
    handlers[counter] = (handler, TurnCheck.Label(file: file, line: line))
    return Token(id: counter)
  }

  func change(
    _ descriptor: Descriptor, _ token: Token, to interest: Epoll.Interest
  ) throws(SystemCallError) {
    try epoll.modify(descriptor.raw, interest, token: token.id)
  }

  /// Ends the watch. The descriptor must still be open.
  func unwatch(_ descriptor: Descriptor, _ token: Token) {
    epoll.remove(descriptor.raw)
    handlers[token.id] = nil
  }

  func setTimer(
    at moment: Instant, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> Token {
    counter += 1
    let label = TurnCheck.Label(file: file, line: line)
    timers.add(.init(at: moment, id: counter, label: label, action: action))
    return Token(id: counter)
  }

  func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> Token {
    counter += 1
    let label = TurnCheck.Label(file: file, line: line)
    awakeTimers.add(.init(at: .now + delay, id: counter, label: label, action: action))
    return Token(id: counter)
  }

  func cancel(_ token: Token) {
    timers.cancel(token.id)
    awakeTimers.cancel(token.id)
  }

  /// Waits once for events, at most until `deadline`, and calls the handlers of those that
  /// occurred.
  func turn(until deadline: Instant?) throws(SystemCallError) {
    // If the machine sleeps during the wait, it ends too early for `awakeTimers`, and the next turn
    // waits for the remaining time.
    let awakeNext = awakeTimers.first.map { Self.now + ($0 - .now) }
    let next = [timers.first, awakeNext, deadline].compactMap { $0 }.min()
    timer.set(next?.nanoseconds)
    check?.end()
    let events = try epoll.wait(milliseconds: -1)
    check?.begin()
    for event in events {
      // An earlier handler may have cancelled this one.
      guard let (handler, label) = handlers[event.token] else { continue }
      step("\(label)") { handler(event.what) }
      checkpoint()
    }
    // A timer that is due again at once waits for the next turn, so that it doesn't delay
    // descriptors.
    let (now, awake) = (Self.now, AwakeInstant.now)
    let latest = counter
    while let due = timers.popDue(at: now, upTo: latest) { fire(due.label, due.action) }
    while let due = awakeTimers.popDue(at: awake, upTo: latest) { fire(due.label, due.action) }
  }

  private func fire(_ label: TurnCheck.Label, _ action: () -> Void) {
    step("timer \(label)") { action() }
    checkpoint()
  }

  /// Names a step of a turn for the message of `TurnCheck`, and returns the value of `body`.
  func step<Value>(_ what: @autoclosure () -> String, _ body: () -> Value) -> Value {
    guard check != nil else { return body() }
    let start = Clocks.monotonic
    check?.beginStep()
    let value = body()
    check?.endStep(from: start, what)
    return value
  }

  /// Called between two handlers or messages, so that `TurnCheck` times each one separately.
  func checkpoint() {
    check?.end()
    check?.begin()
  }
}
