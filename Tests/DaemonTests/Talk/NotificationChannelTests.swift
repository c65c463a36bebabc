import Glibc
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("NOTIFY_SOCKET on the loop") struct NotificationChannelTests {
  private let scratch: Scratch
  private let timers = FakeLoop()
  private let watches = FakeLoop()
  private let messages = Recorded<NotifyMessage>()
  private let lines = LoggedLines()

  init() throws { scratch = try Scratch() }

  private func make() throws -> NotificationChannel {
    NotificationChannel(
      try NotifySocket(path: scratch.uniquePath("notify")), timers: timers, watches: watches,
      isSender: { $0 == getpid() }, log: lines.log)
  }

  private func listen(_ channel: NotificationChannel) throws {
    try channel.listen { [messages, weak channel] in
      messages.all += channel?.receive(limit: 8).messages ?? []
    }
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

  @Test func `To listen twice is to listen once, and nothing is watched after the end`() throws {
    var channel: NotificationChannel? = try make()
    if let channel {
      try listen(channel)
      try listen(channel)
      #expect(watches.active == 1)
      channel.end()
      channel.end()
      #expect(watches.active == 0)
      try UnixSocket.connected(to: channel.path, .datagram).writeAll("READY=1")
      try watches.serve()
      #expect(messages.all.isEmpty)
      try listen(channel)
      #expect(watches.active == 1)
    }
    channel = nil
    #expect(watches.active == 0, "a channel that is freed is watched no more")
  }

  @Test func `A worker that sends too much isn't read for 100 ms, and nothing is lost`() throws {
    let channel = try make()
    try listen(channel)
    // From the first reading on, the allowance is a whole one.
    try flood(channel, 405)
    #expect(messages.all.count == 400 && watches.active == 0)
    timers.advance(by: .milliseconds(99))
    try watches.serveOnce()
    #expect(messages.all.count == 400 && watches.active == 0)
    timers.advance(by: .milliseconds(1))
    try watches.serve()
    #expect(messages.all.count == 405 && watches.active == 1)
    #expect(messages.all.last == .status("404") && lines.all.isEmpty)
  }

  @Test func `A run that ends during that pause isn't listened to any more`() throws {
    let channel = try make()
    try listen(channel)
    try flood(channel, 401)
    channel.end()
    timers.advance(by: .seconds(1))
    #expect(watches.active == 0 && messages.all.count == 400)
  }

  @Test func `The last sign of life is the last WATCHDOG=1, or now during a flood`() throws {
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

@Suite("MEMORY_PRESSURE_WATCH on the loop") struct PressureChannelTests {
  private let scratch: Scratch
  private let watches = FakeLoop()
  private let heard = Heard()

  private final class Heard {
    var connected = 0
    var failures = 0
  }

  init() throws { scratch = try Scratch() }

  private func make() throws -> PressureChannel {
    PressureChannel(try PressureWatch(path: scratch.uniquePath("pressure")), watches)
  }

  private func listen(_ channel: PressureChannel) throws {
    try channel.listen { [heard] in
      heard.connected += 1
    } failed: { [heard] _ in
      heard.failures += 1
    }
  }

  private func connect(_ channel: PressureChannel) throws -> Descriptor {
    let client = try UnixSocket.connected(to: channel.path, .stream)
    try watches.serve()
    return client
  }

  @Test func `Only the first connection is reported, and closed ones can't be asked`() throws {
    let channel = try make()
    try listen(channel)
    #expect(channel.listened == nil && !channel.hasListened)
    do {
      let clients = [try connect(channel), try connect(channel)]
      #expect(heard.connected == 1 && channel.hasListened && channel.listened?.listenerCount == 2)
      withExtendedLifetime(clients) {}
    }
    try watches.serve()
    #expect(channel.listened == nil && channel.hasListened, "it has listened once")
    let client = try connect(channel)
    #expect(channel.listened != nil && heard.connected == 1 && heard.failures == 0)
    withExtendedLifetime(client) {}
  }

  @Test func `Nothing is watched after the end of the run, or when the channel is freed`() throws {
    var channel: PressureChannel? = try make()
    if let channel {
      try listen(channel)
      try listen(channel)
      #expect(watches.active == 1)
      channel.end()
      channel.end()
      let client = try connect(channel)
      #expect(watches.active == 0 && heard.connected == 0 && !channel.hasListened)
      try listen(channel)
      // The connection has waited in the kernel's queue.
      try watches.serve()
      #expect(watches.active == 1 && heard.connected == 1)
      withExtendedLifetime(client) {}
    }
    channel = nil
    #expect(watches.active == 0)
  }

  @Test func `The report of a connection may end the channel`() throws {
    var channel: PressureChannel? = try make()
    let path = try #require(channel?.path)
    try channel?.listen { [heard] in
      heard.connected += 1
      channel = nil
    } failed: { _ in
    }
    let client = try UnixSocket.connected(to: path, .stream)
    try watches.serve()
    #expect(heard.connected == 1 && channel == nil && watches.active == 0)
    withExtendedLifetime(client) {}
  }
}

@Suite("Signs of life")
struct WatchdogSignsTests {
  @Test func `Time during which the machine slept counts as a sign of life`() {
    var signs = WatchdogSigns(slept: .seconds(5))
    #expect(signs.sign(at: .zero + .seconds(10), slept: .seconds(5)) == nil)
    signs.seen(at: .zero + .seconds(12))
    let same = Duration.seconds(5) + .milliseconds(40)
    #expect(signs.sign(at: .zero + .seconds(20), slept: same) == .zero + .seconds(12))
    let night = Duration.seconds(3600)
    #expect(signs.sign(at: .zero + .seconds(4000), slept: night) == .zero + .seconds(4000))
    #expect(signs.sign(at: .zero + .seconds(4001), slept: night) == .zero + .seconds(4000))
  }
}
