import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("Messages to the event loop") struct MailboxTests {
  private final class Receiver { var numbers: [Int] = [] }

  private let loop: EventLoop
  private let receiver = Receiver()

  init() throws { loop = try EventLoop(check: nil) }

  private func watch(_ mailbox: Mailbox<Receiver>) throws {
    try loop.watch(mailbox.descriptor, .readable) { [receiver, loop] _ in
      mailbox.drain(receiver, on: loop)
    }
  }

  @Test("Messages of one thread come in their order, and none is lost among those of many threads")
  func threads() throws {
    let mailbox = try Mailbox<Receiver>()
    try watch(mailbox)
    let threads = try (0..<8).map { thread in
      try TestThread {
        for number in 0..<500 { mailbox.post { $0.numbers.append(thread * 1000 + number) } }
      }
    }
    try loop.turn { receiver.numbers.count == 4000 }
    for thread in threads { thread.join() }
    #expect(Set(receiver.numbers).count == 4000 && receiver.numbers.count == 4000)
    for thread in 0..<8 {
      let fromThread = receiver.numbers.filter { $0 / 1000 == thread }
      #expect(fromThread == fromThread.sorted())
    }
  }

  @Test func `A message that is posted while others are handled comes in the next turn`() throws {
    let mailbox = try Mailbox<Receiver>()
    try watch(mailbox)
    mailbox.post {
      $0.numbers.append(1)
      mailbox.post { $0.numbers.append(3) }
    }
    mailbox.post { $0.numbers.append(2) }
    try loop.turn { receiver.numbers.count == 2 }
    #expect(receiver.numbers == [1, 2])
    try loop.turn { receiver.numbers.count == 3 }
    #expect(receiver.numbers == [1, 2, 3])
  }

  @Test func `Messages that were never read are freed with the mailbox`() throws {
    final class Load: Sendable {}
    weak var kept: Load?
    try {
      let mailbox = try Mailbox<Receiver>()
      let load = Load()
      kept = load
      for _ in 0..<3 { mailbox.post { [load] _ in withExtendedLifetime(load) {} } }
    }()
    #expect(kept == nil)
  }

  @Test func `An outcome that another thread reports twice counts once`() throws {
    let back = try LoopReturn(loop)
    let done: @Sendable (Int) -> Void = back.callback { [receiver] in receiver.numbers.append($0) }
    done(1)
    done(2)
    let last: @Sendable (Int) -> Void = back.callback { [receiver] in receiver.numbers.append($0) }
    last(3)
    try loop.turn { receiver.numbers.count == 2 }
    #expect(receiver.numbers == [1, 3])
  }
}
