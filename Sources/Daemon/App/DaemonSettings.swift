import PolicyFile

/// The daemon's settings at its start.
public struct DaemonSettings: Sendable {
  public var configuration: DaemonConfiguration
  public var stateDirectory: String
  public var socket: String
  /// The environment that workers inherit.
  public var environment: [String: String]
  public var version: String
  /// Reads the configuration again. It is called on a thread that may wait for the disk.
  public var reload: @Sendable () -> ParseResult<DaemonConfiguration>

  public init(
    configuration: DaemonConfiguration, stateDirectory: String, socket: String,
    environment: [String: String], version: String,
    reload: @escaping @Sendable () -> ParseResult<DaemonConfiguration>
  ) {
    self.configuration = configuration
    self.stateDirectory = stateDirectory
    self.socket = socket
    self.environment = environment
    self.version = version
    self.reload = reload
  }
}
