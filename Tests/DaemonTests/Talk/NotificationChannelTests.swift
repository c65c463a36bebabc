import Glibc
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("NOTIFY_SOCKET on the loop") struct NotificationChannelTests {
  private let scratch: Scratch
  private let timers = FakeTimers()
  private let watches = FakeWatches()
  private let heard = Heard()

  private final class Heard {
    var messages: [NotifyMessage] = []
    var isMember = true
    let lines = LoggedLines()
  }

  init() throws { scratch = try Scratch() }

  private func make() throws -> NotificationChannel {
    NotificationChannel(
      try NotifySocket(path: scratch.uniquePath("notify")), timers: timers, watches: watches,
      isSender: { [heard] in heard.isMember && $0 == getpid() }, log: heard.lines.log)
  }

  private func listen(_ channel: NotificationChannel, limit: Int = 8) throws {
    try channel.listen { [heard, weak channel] in
      heard.messages += channel?.receive(limit: limit).messages ?? []
    }
  }

  private func send(_ text: String, _ channel: NotificationChannel) throws {
    try UnixSocket.connected(to: channel.path, .datagram).writeAll(text)
  }

  /// Sends as many messages as the daemon reads at once, and more.
  private func flood(_ channel: NotificationChannel, _ count: Int) throws {
    let socket = try UnixSocket.connected(to: channel.path, .datagram)
    for number in 0..<count {
      try socket.writeAll("STATUS=\(number)")
      // The kernel's queue is short.
      try watches.serveOnce()
    }
  }

  @Test func `What a worker's process sends is received, and what others send isn't`() throws {
    let channel = try make()
    try listen(channel)
    try send("READY=1\nSTATUS=reads", channel)
    try watches.serve()
    #expect(heard.messages == [.ready, .status("reads")])
    heard.isMember = false
    try send("READY=1", channel)
    try watches.serve()
    #expect(heard.messages.count == 2)
  }

  @Test func `A limit leaves the remaining messages for the next turn of the loop`() throws {
    let channel = try make()
    try listen(channel, limit: 2)
    for number in 0..<5 { try send("STATUS=\(number)", channel) }
    try watches.serveOnce()
    #expect(heard.messages.count == 2)
    try watches.serve()
    #expect(heard.messages == (0..<5).map { .status("\($0)") })
  }

  @Test func `To listen twice is to listen once, and nothing is watched after the end`() throws {
    var channel: NotificationChannel? = try make()
    if let channel {
      try listen(channel)
      try listen(channel)
      #expect(watches.active == 1)
      channel.end()
      channel.end()
      #expect(watches.active == 0)
      try send("READY=1", channel)
      try watches.serve()
      #expect(heard.messages.isEmpty)
      try listen(channel)
      #expect(watches.active == 1)
    }
    channel = nil
    #expect(watches.active == 0, "a channel that is freed is watched no more")
  }

  @Test("A worker that sends more than its limit isn't read for 100 ms, and nothing is lost")
  func flood() throws {
    let channel = try make()
    try listen(channel)
    // From the first reading on, the allowance is a whole one.
    try flood(channel, 405)
    #expect(heard.messages.count == 400 && watches.active == 0)
    timers.advance(by: .milliseconds(99))
    try watches.serveOnce()
    #expect(heard.messages.count == 400 && watches.active == 0)
    timers.advance(by: .milliseconds(1))
    try watches.serve()
    #expect(heard.messages.count == 405 && watches.active == 1)
    #expect(heard.messages.last == .status("404") && heard.lines.all.isEmpty)
  }

  @Test func `A run that ends during that pause isn't listened to any more`() throws {
    let channel = try make()
    try listen(channel)
    try flood(channel, 401)
    channel.end()
    timers.advance(by: .seconds(1))
    #expect(watches.active == 0 && heard.messages.count == 400)
  }

  @Test("The last sign of life is the last WATCHDOG=1, or now while more waits than is read")
  func signs() throws {
    let channel = try make()
    try listen(channel)
    #expect(channel.lastSign() == nil)
    channel.recordSign()
    let first = timers.now
    timers.advance(by: .seconds(5))
    #expect(channel.lastSign() == first)
    try flood(channel, 401)
    timers.advance(by: .milliseconds(50))
    // The last messages haven't been read.
    #expect(channel.lastSign() == timers.now)
    let busy = timers.now
    // A worker that hangs after a flood is found, because no messages wait any more.
    timers.advance(by: .seconds(5))
    try watches.serve()
    timers.advance(by: .seconds(5))
    _ = channel.receive(limit: 64)
    #expect(channel.lastSign() == busy)
  }
}
