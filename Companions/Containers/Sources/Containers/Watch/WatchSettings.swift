/// The settings of a `ContainerWatch`.
public struct WatchSettings: Sendable {
  public var runtimes: [Runtime]
  /// The path of the daemon's control socket.
  public var socket: String
  /// True if the user has named the socket.
  public var isNamed = false
  /// True if the changes are only logged.
  public var isDryRun = false
  /// The interval at which the daemon is asked for its workers: another daemon may have replaced
  /// it.
  public var daemonInterval = Duration.seconds(5)
  /// The interval at which a runtime is asked for its containers, in addition to its events.
  public var runtimeInterval = Duration.seconds(60)
  public var retry = RetryDelays()
  /// Returns whether a process lives in a container; nil if it has ended. Tests provide their own
  /// function.
  public var isContained: @Sendable (Int32) -> Bool? = ContainerWatch.hasSeparateMounts

  public init(runtimes: [Runtime], socket: String) {
    self.runtimes = runtimes
    self.socket = socket
  }
}
