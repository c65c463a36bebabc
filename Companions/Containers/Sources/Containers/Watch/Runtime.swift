import AsyncHTTPClient
import ContainerPlan

/// A runtime and its socket.
public struct Runtime: Hashable, Sendable {
  public enum Interface: Hashable, Sendable {
    /// The Engine API of Docker and Podman.
    case engine
    /// The Container Runtime Interface of containerd and CRI-O, under Kubernetes.
    case cri
  }

  public var name: String
  public var socket: String
  public var interface: Interface

  public init(name: String, socket: String, interface: Interface = .engine) {
    self.name = name
    self.socket = socket
    self.interface = interface
  }

  func client(_ http: HTTPClient) -> any RuntimeClient {
    switch interface {
    case .engine: EngineClient(self, http)
    case .cri: CRIClient(self)
    }
  }
}

/// The requests to a runtime.
protocol RuntimeClient: Sendable {
  var runtime: Runtime { get }

  /// Returns the running containers whose settings concern Dormouse.
  func containers() async throws(EngineError) -> [Container]

  /// Calls back when changes begin to be noticed, and for each one that may matter. It returns only
  /// by throwing an error.
  func followEvents(
    opened: @escaping @Sendable () async -> Void, changed: @escaping @Sendable () async -> Void
  ) async throws(EngineError)
}
