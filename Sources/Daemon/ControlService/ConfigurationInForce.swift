import PolicyFile

/// The configuration in force. The workers' own configurations are in `WorkerUnit`.
final class ConfigurationInForce {
  private(set) var current: DaemonConfiguration

  init(_ configuration: DaemonConfiguration) { current = configuration }

  /// Applies a configuration that was read again.
  func apply(_ configuration: DaemonConfiguration) { current = configuration }

  /// Drops the list of workers once they have been introduced. From here on each worker has its own
  /// configuration. A reload brings a new list.
  func dropWorkers() { current.workers = [] }
}
