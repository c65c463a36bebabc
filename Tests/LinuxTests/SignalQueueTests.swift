import Glibc
import Testing

@testable import Linux

/// The tests run on threads of their own, because a changed signal mask ends with its thread.
struct SignalQueueTests {
  /// Runs `body` on a thread that no other test uses, and returns its result.
  private static func onSeparateThread<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
  ) throws -> Value {
    try WorkQueue(name: "test-signals").perform { Result { try body() } }.get()
  }

  /// Sends a signal to the calling thread only.
  private static func raise(_ signal: Int32) { pthread_kill(pthread_self(), signal) }

  @Test func `Sent signals wait in the queue, each kind once, and are removed by reading`() throws {
    let received = try Self.onSeparateThread {
      let queue = try SignalQueue([SIGUSR1, SIGUSR2])
      let before = queue.arrivals()
      for signal in [SIGUSR1, SIGUSR2, SIGUSR1] { Self.raise(signal) }
      return (before, queue.arrivals(), queue.arrivals())
    }
    #expect(received.0.isEmpty && received.2.isEmpty)
    #expect(Set(received.1.map(\.number)) == [SIGUSR1, SIGUSR2] && received.1.count == 2)
    #expect(received.1.allSatisfy { !$0.isFromTerminal }, "a process has sent them")
  }

  @Test func `One signal at a time leaves the others in the queue`() throws {
    let received = try Self.onSeparateThread {
      let queue = try SignalQueue([SIGUSR1, SIGUSR2])
      Self.raise(SIGUSR1)
      Self.raise(SIGUSR2)
      return [queue.next(), queue.next(), queue.next()]
    }
    #expect(Set(received.prefix(2)) == [SIGUSR1, SIGUSR2] && received[2] == nil)
  }

  @Test func `The descriptor is readable while a signal waits, and not afterwards`() throws {
    let received = try Self.onSeparateThread {
      let queue = try SignalQueue([SIGUSR1])
      func isReadable() -> Bool {
        var entry = pollfd(fd: queue.raw, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 1
      }
      let before = isReadable()
      Self.raise(SIGUSR1)
      let during = isReadable()
      _ = queue.arrivals()
      return [before, during, isReadable()]
    }
    #expect(received == [false, true, false])
  }

  @Test("If there are more signals than one read returns, further reads return the rest")
  func many() throws {
    // Several real-time signals of one number can be pending.
    let signal = SIGUSR2 + 28
    let counts = try Self.onSeparateThread {
      let queue = try SignalQueue([signal])
      for _ in 0..<40 { Self.raise(signal) }
      return [queue.arrivals().count, queue.arrivals().count, queue.arrivals().count]
    }
    #expect(counts == [16, 16, 8])
  }
}
