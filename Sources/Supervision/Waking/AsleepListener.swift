import Linux

/// A listener of a sleeping worker at which the daemon answers health checks instead
/// (`health_checks_while_asleep`). The daemon has a duplicate of the socket while the worker
/// sleeps. The arrival of a connection alone doesn't wake the worker there.
public struct AsleepListener: Sendable {
  public let port: UInt16
  /// A process in whose network namespace the listener is.
  public let pid: Int32
  public let descriptor: Descriptor

  /// The number of connections in its queue, including those that were reset there.
  public var queued: Int {
    Int(clamping: (try? SocketFacts.read(descriptor))?.unread ?? 0)
  }

  init?(_ input: WorkerInput, answered: Set<UInt16>) {
    guard let facts = input.facts, facts.isListening,
      case .internet(_, let port) = facts.local, answered.contains(port)
    else { return nil }
    self.port = port
    pid = input.pid
    descriptor = input.duplicate
  }

  /// The state of the queue.
  public enum Queue: Hashable, Sendable {
    case empty
    /// All clients have closed without sending anything. This many connections can be accepted and
    /// closed.
    case onlyChecks(Int)
    /// A client has connected and has sent nothing yet.
    case silent
    /// A client has sent a request.
    case request
  }

  /// Inspects the queue without accepting anything. A queue returns its oldest connection first. So
  /// the connections that are counted before the inspection are the ones that `accept` returns
  /// next.
  public func inspect() -> Queue {
    let count = queued
    if count == 0 { return .empty }
    // A request that is missing beside a silent client is found by the next inspection. If the
    // kernel doesn't list the connections, they count as a request.
    guard
      let waiting = try? UnacceptedConnection.list(at: port, networkOf: pid, stopsAtUse: true)
    else { return .request }
    if waiting.contains(where: { $0.unread > 0 }) { return .request }
    return waiting.allSatisfy(\.isEmpty) ? .onlyChecks(count) : .silent
  }

  /// Accepts and closes this many connections whose clients have closed.
  ///
  /// - Throws: EMFILE or ENFILE while no descriptor is free.
  public func discard(_ count: Int) throws(SystemCallError) {
    for _ in 0..<count {
      // It is nil if the queue is empty.
      guard let connection = try acceptConnection(descriptor) else { return }
      withExtendedLifetime(connection) {}
    }
  }
}
