import CLinux
import Glibc
import Linux
import Policy

/// How a worker shows that it is ready.
public enum ReadinessRule: Hashable, Sendable {
  /// It says `READY=1`.
  case notify
  /// It writes a line to this descriptor of its own (s6's `notification-fd`).
  case descriptor(Int32)
  /// It accepts connections on this port of the loopback interface.
  case tcp(UInt16)
  /// It writes a line that contains this text.
  case logLine(String)
  /// It writes a line that matches this extended regular expression.
  case logPattern(String)
  /// It answers a probe, which is repeated.
  case probe(Probe)
}

/// One launch's wait for readiness. Belongs to the event loop's thread, which calls `check` every 50 ms or so.
/// If there is a `scan`, the loop has a thread that may wait perform it instead.
public final class Readiness {
  public let rule: ReadinessRule
  public private(set) var isReady = false
  private var tcp: TCPProbe?
  /// The pattern that is searched for in the log.
  public private(set) var scan: LogScan?
  private var hasComplained = false
  private var channel: Descriptor?

  public init(_ rule: ReadinessRule, worker: WorkerProcess) {
    self.rule = rule
    let (log, start) = (worker.plan.logPlace, worker.logStart)
    switch rule {
    case .notify, .probe: break
    case .descriptor: channel = worker.plan.readinessChannel?.descriptor
    case .tcp(let port): tcp = TCPProbe(port: port)
    case .logLine(let text): scan = LogScan(log, offset: start, text: text)
    case .logPattern(let pattern): scan = LogScan(log, offset: start, pattern: pattern)
    }
  }

  /// False if there is nothing to look for: the worker reports readiness itself, or is probed (`ProbeRunner`).
  public var needsChecking: Bool {
    if case .probe = rule { return false }
    return !isReady && rule != .notify
  }

  /// The worker sent `READY=1`. It is ready then, whatever the rule waits for. The look for that is given up: a
  /// connection that it had begun would stay until the daemon's end, and wake the worker then.
  public func notified() {
    isReady = true
    tcp = nil
    scan = nil
    channel = nil
  }

  /// What looked like readiness wasn't the worker's, or isn't known to be yet.
  public func reject() { isReady = false }

  public func check() throws(SystemCallError) -> Bool {
    if isReady { return true }
    if let tcp { isReady = tcp.attempt() }
    if let channel { isReady = ReadinessChannel.holdsLine(channel) }
    if let scan { isReady = try scan.look() }
    return isReady
  }

  /// True the first time: a failure that occurs at each look is worth one line in the daemon's log.
  public func takeComplaint() -> Bool {
    defer { hasComplained = true }
    return !hasComplained
  }
}

/// Where a worker with `notification_fd` writes its line. A file in memory, not a pipe: a pipe whose
/// reader has died with the daemon would end the worker at its first word (SIGPIPE).
public struct ReadinessChannel: Sendable {
  public let descriptor: Descriptor
  /// The worker's number for it.
  public let number: Int32

  public init(number: Int32) throws(SystemCallError) {
    descriptor = Descriptor(
      owning: try shim("memfd_create") { clinux_memory_file("readiness") })
    self.number = number
  }

  static func holdsLine(_ file: Descriptor) -> Bool {
    // A file that can't be read holds no line.
    let bytes = (try? file.readBytes(upTo: 4096, at: 0)) ?? []
    return bytes.contains(UInt8(ascii: "\n"))
  }
}
