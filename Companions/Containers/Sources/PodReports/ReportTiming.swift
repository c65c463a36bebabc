/// The times of reports.
public struct ReportTiming: Hashable, Sendable {
  /// The time for which a pod has slept before its requests shrink.
  public var resizeAfter = Duration.seconds(10)
  /// The time after a restored request during which it isn't lowered again.
  public var pauseBetweenResizes = Duration.seconds(60)
  /// The time after a restored request at which it is checked whether the kubelet has applied it.
  public var resizeCheck = Duration.seconds(10)
  /// The interval at which the API's state is read again: another program may have changed it.
  public var reread = Duration.seconds(600)
  /// The time for which a refused step of one pod waits. It doubles each time.
  public var firstRetry = Duration.seconds(5)
  public var longestRetry = Duration.seconds(300)
  /// The time to wait for an API that doesn't answer. It doubles each time.
  public var firstOutage = Duration.seconds(1)
  public var longestOutage = Duration.seconds(30)
  /// The time for which a forbidden request isn't tried.
  public var forbidden = Duration.seconds(300)
  /// The time for which the daemon may be away before conditions report it: another one may replace
  /// it.
  public var daemonTimeout = Duration.seconds(15)
  /// The timeout of the end of this program.
  public var end = Duration.seconds(8)
  public var events = EventQueue.Limits()

  public init() {}
}
