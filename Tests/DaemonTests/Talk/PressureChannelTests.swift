import Linux
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("MEMORY_PRESSURE_WATCH on the loop") struct PressureChannelTests {
  private let scratch: Scratch
  private let watches = FakeWatches()
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

  @Test func `The first connection is reported, and later ones aren't news`() throws {
    let channel = try make()
    try listen(channel)
    #expect(channel.listened == nil && !channel.hasListened)
    var clients = [try connect(channel)]
    #expect(heard.connected == 1 && channel.hasListened && channel.listened?.listenerCount == 1)
    clients.append(try connect(channel))
    #expect(heard.connected == 1 && channel.listened?.listenerCount == 2 && heard.failures == 0)
    withExtendedLifetime(clients) {}
  }

  @Test("A worker that has closed its connections can't be asked, and one that returns can")
  func closed() throws {
    let channel = try make()
    try listen(channel)
    do {
      let client = try connect(channel)
      #expect(channel.listened != nil)
      withExtendedLifetime(client) {}
    }
    try watches.serve()
    #expect(channel.listened == nil && channel.hasListened, "it has listened once")
    let client = try connect(channel)
    #expect(channel.listened != nil && heard.connected == 1)
    withExtendedLifetime(client) {}
  }

  @Test func `A listener is asked by one byte, and what it writes has no meaning`() throws {
    let channel = try make()
    try listen(channel)
    let client = try connect(channel)
    try client.writeAll("some 150000 2000000")
    try watches.serve()
    let socket = try #require(channel.listened)
    #expect(try socket.notifyAll() == 1)
    #expect(try client.read(upTo: 16) == [1])
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
