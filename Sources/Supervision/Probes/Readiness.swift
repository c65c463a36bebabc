import CLinux
import Linux
import Policy

/// Waits for the readiness of one launch. It belongs to the event loop's thread, which calls
/// `check` about every 50 ms. If there is a `scan`, the loop has a thread that may block perform it
/// instead.
public final class Readiness {
  public let rule: ReadinessRule
  public private(set) var isReady = false
  private var tcp: TCPProbe?
  /// The search for a text or pattern in the log, if the rule is one of these.
  public private(set) var scan: LogScan?
  private var hasFailed = false
  private var channel: Descriptor?

  public init(_ rule: ReadinessRule, worker: WorkerProcess) {
    self.rule = rule
    let (log, start) = (worker.plan.logDestination, worker.logStart)
    switch rule {
    case .notify, .probe: break
    case .notificationDescriptor: channel = worker.plan.readinessChannel?.descriptor
    case .tcp(let port): tcp = TCPProbe(port: port)
    case .logLine(let text): scan = LogScan(log, offset: start, text: text)
    case .logPattern(let pattern): scan = LogScan(log, offset: start, pattern: pattern)
    }
  }

  /// Whether `check` has to be called. It is false if the worker reports readiness itself, if it is
  /// probed (`ProbeRunner`), and once it is ready.
  public var needsChecking: Bool {
    if case .probe = rule { return false }
    return !isReady && rule != .notify
  }

  /// Called when the worker has sent `READY=1`. It is ready then, whatever the rule waits for, and
  /// the check of that rule is cancelled. A connection that the check has begun would otherwise
  /// stay open until the daemon ends, and wake the worker then.
  public func didNotify() {
    isReady = true
    tcp = nil
    scan = nil
    channel = nil
  }

  /// Withdraws readiness: the sign didn't come from the worker, or that isn't known yet.
  public func reject() { isReady = false }

  /// Checks once whether the worker is ready. It never blocks, except if there is a `scan`.
  public func check() throws(SystemCallError) -> Bool {
    if isReady { return true }
    if let tcp { isReady = tcp.attempt() }
    if let channel { isReady = ReadinessChannel.containsLine(channel) }
    if let scan { isReady = try scan.scan() }
    return isReady
  }

  /// Returns true the first time only: a failure that each check repeats gets one line in the
  /// daemon's log.
  public func recordFailure() -> Bool {
    defer { hasFailed = true }
    return !hasFailed
  }
}

/// The file to which a worker with `notification_fd` writes its line. It is a file in memory and
/// not a pipe: if the daemon has died, a pipe has no reader, and SIGPIPE would end the worker when
/// it writes.
public struct ReadinessChannel: Sendable {
  public let descriptor: Descriptor
  /// The number of the descriptor in the worker.
  public let number: Int32

  public init(number: Int32) throws(SystemCallError) {
    descriptor = Descriptor(
      owning: try shim("memfd_create") { clinux_memory_file("readiness") })
    self.number = number
  }

  static func containsLine(_ file: Descriptor) -> Bool {
    // A file that can't be read holds no line.
    let bytes = (try? file.readBytes(upTo: 4096, at: 0)) ?? []
    return bytes.contains(UInt8(ascii: "\n"))
  }
}
