import CLinux
import Linux

/// The listeners of a sleeping worker at which the daemon answers health checks in its place
/// (`health_checks_while_asleep`), held as duplicates for as long as it sleeps: what wakes it there isn't decided by
/// the arrival of a connection.
public struct AsleepListener: Sendable {
  public let port: UInt16
  /// Whose network it is in.
  public let pid: Int32
  public let descriptor: Descriptor

  /// Connections in its queue; those that were reset there count, too.
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

  /// What the queue holds.
  public enum Queue: Hashable, Sendable {
    case empty
    /// All of them have closed without sending anything; this many can be accepted and closed.
    case onlyChecks(Int)
    /// A client has connected and has sent nothing, yet.
    case silent
    /// A client has sent a request.
    case call
  }

  /// Without taking anything from it. A queue gives the oldest first, so those that are counted before
  /// the look at them are the ones that `accept` gives next.
  public func look() -> Queue {
    let count = queued
    if count == 0 { return .empty }
    // What the kernel doesn't list counts as a call.
    guard let waiting = try? UnacceptedConnection.list(at: port, networkOf: pid) else {
      return .call
    }
    if waiting.contains(where: { $0.unread > 0 }) { return .call }
    return waiting.allSatisfy(\.isEmpty) ? .onlyChecks(count) : .silent
  }

  /// Accepts and closes this many connections whose clients have closed.
  ///
  /// - Throws: EMFILE or ENFILE while there is no descriptor for one.
  public func discard(_ count: Int) throws(SystemCallError) {
    for _ in 0..<count {
      // nil: there is none any more.
      guard let connection = try acceptConnection(descriptor) else { return }
      withExtendedLifetime(connection) {}
    }
  }
}

/// What a health check asks, as far as it has come.
public struct HealthRequest: Hashable, Sendable {
  public enum Verdict: Hashable, Sendable {
    /// Not all of it is there.
    case incomplete
    /// A GET or HEAD of one of the paths.
    case check(hasBody: Bool)
    case other
  }

  private var received: [UInt8] = []
  private let paths: [String]
  /// A request's line and headers; one that is longer is no check.
  private static let limit = 8 << 10

  public init(paths: [String]) { self.paths = paths }

  public var isEmpty: Bool { received.isEmpty }

  public mutating func receive(_ bytes: [UInt8]) -> Verdict {
    received += bytes
    // The headers must have come, too: closing with something unread would reset the connection, and
    // take the answer with it.
    let text = String(decoding: received, as: UTF8.self)
    guard received.suffix(4) == [13, 10, 13, 10] else {
      return received.count > Self.limit || received.contains(0) ? .other : .incomplete
    }
    // A CR LF is one Character.
    let words = text.split(separator: "\r\n").first?.split(separator: " ") ?? []
    guard words.count == 3, words[2].hasPrefix("HTTP/1."), words[0] == "GET" || words[0] == "HEAD",
      paths.contains(where: { words[1].prefix(while: { $0 != "?" }) == $0 })
    else { return .other }
    return .check(hasBody: words[0] == "GET")
  }
}
