import AsyncHTTPClient
import Control
import NIOCore
import NIOSSL

/// The connection to the API, with the cluster's own authority.
public enum KubernetesHTTP {
  /// The reason why there can't be a connection: a file can't be read.
  public struct Unusable: Error, Hashable, Sendable, CustomStringConvertible {
    public var description: String
  }

  /// Returns a client, which must be shut down after use.
  public static func client(
    for access: KubernetesAccess
  ) throws(Unusable) -> HTTPClient {
    var configuration = HTTPClient.Configuration()
    configuration.timeout.connect = .seconds(5)
    configuration.httpVersion = .http1Only
    configuration.redirectConfiguration = .disallow
    // Requests come one at a time. A proxy of the environment isn't used: the API is in the
    // cluster.
    configuration.connectionPool.idleTimeout = .seconds(60)
    if access.url.hasPrefix("https:") {
      configuration.tlsConfiguration = try security(access)
    }
    return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  private static func security(
    _ access: KubernetesAccess
  ) throws(Unusable) -> TLSConfiguration {
    var security = TLSConfiguration.makeClientConfiguration()
    security.minimumTLSVersion = .tlsv12
    if let path = access.authorityFile {
      let certificates = try read(path) { try NIOSSLCertificate.fromPEMFile($0) }
      guard !certificates.isEmpty else {
        throw Unusable(description: "\(escaped(path)): no certificate")
      }
      security.trustRoots = .certificates(certificates)
    }
    if let path = access.certificateFile {
      security.certificateChain = try read(path) {
        try NIOSSLCertificate.fromPEMFile($0).map { .certificate($0) }
      }
    }
    if let path = access.keyFile {
      security.privateKey = .privateKey(
        try read(path) { try NIOSSLPrivateKey(file: $0, format: .pem) })
    }
    return security
  }

  private static func read<Value>(
    _ path: String, _ body: (String) throws -> Value
  ) throws(Unusable) -> Value {
    do { return try body(path) } catch {
      throw Unusable(description: "\(escaped(path)) can't be read: \(error)")
    }
  }
}
