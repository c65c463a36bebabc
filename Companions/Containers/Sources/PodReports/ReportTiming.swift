/// The times of reports.
public struct ReportTiming: Hashable, Sendable {
  /// How long a pod has slept before its requests shrink.
  public var resizeAfter = Duration.seconds(10)
  /// After a request was restored it isn't lowered again for that long.
  public var restBetweenResizes = Duration.seconds(60)
  /// After a request was restored: when it is looked whether the kubelet has applied it.
  public var resizeCheck = Duration.seconds(10)
  /// How often the API's side is read again: another program may have changed it.
  public var reread = Duration.seconds(600)
  /// How long a refused step of one pod waits: twice as long each time.
  public var firstRetry = Duration.seconds(5)
  public var longestRetry = Duration.seconds(300)
  /// The same for an API that doesn't answer.
  public var firstOutage = Duration.seconds(1)
  public var longestOutage = Duration.seconds(30)
  /// How long what isn't permitted isn't tried.
  public var forbidden = Duration.seconds(300)
  /// How long the daemon may be away before conditions say so: it may have been replaced.
  public var daemonPatience = Duration.seconds(15)
  /// How long the end of this program may take.
  public var end = Duration.seconds(8)
  public var events = EventBook.Limits()

  public init() {}
}
