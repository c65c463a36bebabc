import Daemon
import Glibc
import Linux
import TestSupport

/// Watches real descriptors. Their handlers are called when a test says so.
package final class FakeWatches: DescriptorWatches {
  package typealias Handler = (Epoll.Interest) -> Void

  package struct Watched {
    package let token: LoopToken
    package let descriptor: Descriptor
    package var interest: Epoll.Interest
    let handler: Handler

    func isReadable() throws -> Bool {
      guard interest.contains(.readable) else { return false }
      return try pollDescriptor(descriptor.raw, for: POLLIN, until: Deadline(in: .zero))
    }
  }

  package private(set) var watched: [Watched] = []
  /// The error code with which the next watches fail.
  package var refusal: Int32?
  private var count: UInt64 = 0

  package init() {}

  /// The number of descriptors whose watch isn't empty.
  package var active: Int { watched.count { !$0.interest.isEmpty } }

  package func watch(
    _ descriptor: Descriptor, _ interest: Epoll.Interest, file: StaticString, line: UInt,
    _ handler: @escaping Handler
  ) throws(SystemCallError) -> LoopToken {
    if let refusal { throw SystemCallError("epoll_ctl", on: "test", code: refusal) }
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
    watched.removeAll { $0.token == token && $0.descriptor === descriptor }
  }

  /// Reports an event of the descriptor with this index, if there is one.
  package func fire(_ index: Int = 0) {
    if watched.indices.contains(index) { watched[index].handler(watched[index].interest) }
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
