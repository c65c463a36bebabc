import Daemon
import Glibc
import Linux
import TestSupport

/// Watches real descriptors. Their handlers are called when a test says so.
package final class FakeWatches: DescriptorWatches {
  package typealias Handler = (Epoll.Interest) -> Void

  private struct Watched {
    let token: LoopToken
    let descriptor: Descriptor
    var interest: Epoll.Interest
    let handler: Handler

    func isReadable() throws -> Bool {
      guard interest.contains(.readable) else { return false }
      return try pollDescriptor(descriptor.raw, for: POLLIN, until: Deadline(in: .zero))
    }
  }

  private var watched: [Watched] = []
  private var count: UInt64 = 0

  package init() {}

  /// The number of descriptors whose watch isn't empty.
  package var active: Int { watched.count { !$0.interest.isEmpty } }

  package func watch(
    _ descriptor: Descriptor, _ interest: Epoll.Interest, file: StaticString, line: UInt,
    _ handler: @escaping Handler
  ) throws(SystemCallError) -> LoopToken {
    count += 1
    let token = LoopToken(id: count)
    watched.append(
      Watched(token: token, descriptor: descriptor, interest: interest, handler: handler))
    return token
  }

  package func change(
    _ descriptor: Descriptor, _ token: LoopToken, to interest: Epoll.Interest
  ) throws(SystemCallError) {
    for index in watched.indices where watched[index].token == token {
      watched[index].interest = interest
    }
  }

  package func unwatch(_ descriptor: Descriptor, _ token: LoopToken) {
    watched.removeAll { $0.token == token }
  }

  /// Calls the handler of each readable descriptor once.
  ///
  /// - Returns: whether a descriptor was readable.
  @discardableResult
  package func serveOnce() throws -> Bool {
    let ready = try watched.filter { try $0.isReadable() }
    for each in ready where watched.contains(where: { $0.token == each.token }) {
      each.handler(.readable)
    }
    return !ready.isEmpty
  }

  /// Calls handlers until no descriptor is readable any more.
  package func serve() throws {
    for _ in 0..<10_000 where try !serveOnce() { return }
    throw TestFailure("a descriptor stays readable")
  }
}
