import CLinux
import Glibc
import Linux
import Policy

/// How it is known that a worker is ready.
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
  /// It answers a question that is asked over and over.
  case probe(Probe)
}

/// One launch's wait for readiness. Belongs to the event loop's thread, which calls `check` every
/// 50 ms or so; it never blocks.
public final class Readiness {
  public let rule: ReadinessRule
  public private(set) var isReady = false
  private var tcp: TCPProbe?
  private var scanner: LogLineScanner?
  private var pattern: LogPatternScanner?
  private var channel: Descriptor?

  public init(_ rule: ReadinessRule, worker: WorkerProcess) {
    self.rule = rule
    let log = (path: worker.plan.logPath, offset: worker.logStart)
    switch rule {
    case .notify, .probe: break
    case .descriptor: channel = worker.plan.readinessChannel?.descriptor
    case .tcp(let port): tcp = TCPProbe(port: port)
    case .logLine(let text):
      scanner = LogLineScanner(path: log.path, offset: log.offset, text: text)
    case .logPattern(let text):
      pattern = LogPatternScanner(path: log.path, offset: log.offset, pattern: text)
    }
  }

  /// False where there is nothing to look for: it says so itself, or it is asked (`ProbeRunner`).
  public var needsChecking: Bool {
    if case .probe = rule { return false }
    return !isReady && rule != .notify
  }

  /// It said `READY=1`. Whoever says so is ready, whatever the rule waits for. What looked for that is
  /// given up: a connection that it had begun would stay until the daemon's end, and wake the worker then.
  public func notified() {
    isReady = true
    tcp = nil
    scanner = nil
    pattern = nil
    channel = nil
  }

  public func check() throws(SystemCallError) -> Bool {
    if isReady { return true }
    if let tcp { isReady = tcp.attempt() }
    if let channel { isReady = ReadinessChannel.holdsLine(channel) }
    if scanner != nil { isReady = try scanner?.scan() ?? false }
    if let pattern { isReady = try pattern.scan() }
    return isReady
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
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = pread(file.raw, &bytes, bytes.count, 0)
    return count > 0 && bytes.prefix(count).contains(UInt8(ascii: "\n"))
  }
}
