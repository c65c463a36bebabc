import Linux

/// The source of a worker's traffic, as far as it is known.
public struct TrafficSource: Hashable, Sendable {
  /// A clause that can follow a colon: `connection from 127.0.0.1:5123 to port 8080`, `data on
  /// stdin`.
  public var text: String
  /// The worker's own port.
  public var port: UInt16?
}

extension TrafficSource {
  /// Describes an input at which data has arrived.
  ///
  /// - Parameter served: the ports at which the worker listens.
  init(_ name: InputName, served: Set<UInt16>) {
    self.init(text: name.sentence(isHangUp: false, served: served))
    switch name {
    case .listener(.internet(_, let port)), .datagrams(.internet(_, let port)): self.port = port
    case .connection(.internet(_, let port), _) where served.contains(port): self.port = port
    default: break
    }
  }

  /// Describes a connection. Returns nil if the other end has no name.
  init?(_ facts: SocketFacts, served: Set<UInt16>) {
    guard facts.isStream, !facts.isListening else { return nil }
    switch (facts.local, facts.peer) {
    case (.internet(_, let port), let peer) where served.contains(port) && peer != .none:
      self.init(text: "connection from \(peer) to port \(port)", port: port)
    case (.internet, let peer) where peer != .none:
      self.init(text: "data on its connection to \(peer)")
    case (.path(let path), _) where facts.peerProcess > 0:
      // A process that has ended has no name.
      let name = (try? ProcessStat.read(facts.peerProcess))?.name
      let process = name.map { "\($0), pid \(facts.peerProcess)" } ?? "pid \(facts.peerProcess)"
      self.init(text: "connection from \(process) to \(path)")
    default: return nil
    }
  }
}
