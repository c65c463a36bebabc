import Linux

/// Delivers outcomes from other threads on the event loop. Belongs to the loop's thread; the
/// returned closures may be called on any thread.
final class LoopReturn {
  private let mailbox: Mailbox<LoopReturn>
  private var waiting: [UInt64: (any Sendable) -> Void] = [:]
  private var relays: [UInt64: (any Sendable) -> Void] = [:]
  private var count: UInt64 = 0

  init(_ loop: EventLoop) throws(SystemCallError) {
    mailbox = try Mailbox()
    try loop.watch(mailbox.descriptor, .readable) { [unowned self, unowned loop] _ in
      mailbox.drain(self, on: loop)
    }
  }

  /// Returns a closure that another thread calls once, with the outcome. `body` is then called on
  /// the loop. If the closure is never called, `body` is kept as long as this object lives.
  func callback<Value: Sendable>(
    _ body: @escaping (Value) -> Void
  ) -> @Sendable (Value) -> Void {
    count += 1
    let number = count
    waiting[number] = { if let value = $0 as? Value { body(value) } }
    return { [mailbox] value in
      mailbox.post { $0.waiting.removeValue(forKey: number)?(value) }
    }
  }

  /// Returns a closure that other threads may call any number of times. Each call calls `body` on
  /// the loop. `body` is kept until the closure is freed.
  func relay<Value: Sendable>(
    _ body: @escaping (Value) -> Void
  ) -> @Sendable (Value) -> Void {
    count += 1
    let entry = RelayEntry(number: count, mailbox)
    relays[count] = { if let value = $0 as? Value { body(value) } }
    return { [mailbox] value in
      mailbox.post { $0.relays[entry.number]?(value) }
    }
  }

  private final class RelayEntry: Sendable {
    let number: UInt64
    private let mailbox: Mailbox<LoopReturn>

    init(number: UInt64, _ mailbox: Mailbox<LoopReturn>) {
      self.number = number
      self.mailbox = mailbox
    }

    deinit { mailbox.post { [number] in $0.relays[number] = nil } }
  }
}
