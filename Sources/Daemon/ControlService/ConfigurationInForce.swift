import PolicyFile

/// The daemon's configuration as it is now. Each worker has its own: it is in `WorkerUnit`.
final class ConfigurationInForce {
  private(set) var current: DaemonConfiguration

  init(_ configuration: DaemonConfiguration) { current = configuration }

  /// It was read again.
  func apply(_ configuration: DaemonConfiguration) { current = configuration }

  /// The workers have been introduced: from here on, each has its own; a reload brings a new list.
  func dropWorkers() { current.workers = [] }
}
