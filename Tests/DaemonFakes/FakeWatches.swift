import Glibc
import Linux
import TestSupport

@testable import Daemon

/// Real descriptors, whose handlers are called when a test says so.
final class FakeWatches: DescriptorWatches {
  private struct Watched {
    let token: EventLoop.Token
    let descriptor: Descriptor
    var interest: Epoll.Interest
    let handler: EventLoop.Handler

    func isReadable() throws -> Bool {
      guard interest.contains(.readable) else { return false }
      return try pollDescriptor(descriptor.raw, for: POLLIN, until: Deadline(in: .zero))
    }
  }

  private var watched: [Watched] = []
  private var count: UInt64 = 0

  /// How many descriptors are watched for something.
  var active: Int { watched.count { !$0.interest.isEmpty } }

  func watch(
    _ descriptor: Descriptor, _ interest: Epoll.Interest, file: StaticString, line: UInt,
    _ handler: @escaping EventLoop.Handler
  ) throws(SystemCallError) -> EventLoop.Token {
    count += 1
    let token = EventLoop.Token(id: count)
    watched.append(
      Watched(token: token, descriptor: descriptor, interest: interest, handler: handler))
    return token
  }

  func change(
    _ descriptor: Descriptor, _ token: EventLoop.Token, to interest: Epoll.Interest
  ) throws(SystemCallError) {
    for place in watched.indices where watched[place].token == token {
      watched[place].interest = interest
    }
  }

  func unwatch(_ descriptor: Descriptor, _ token: EventLoop.Token) {
    watched.removeAll { $0.token == token }
  }

  /// Calls the handlers of what is readable once.
  ///
  /// - Returns: whether there was something.
  @discardableResult
  func serveOnce() throws -> Bool {
    let ready = try watched.filter { try $0.isReadable() }
    for each in ready where watched.contains(where: { $0.token == each.token }) {
      each.handler(.readable)
    }
    return !ready.isEmpty
  }

  /// Until nothing is readable any more.
  func serve() throws {
    for _ in 0..<10_000 where try !serveOnce() { return }
    throw TestFailure("a descriptor stays readable")
  }
}
