import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The functions of the worker's run that `ReadinessWatch` uses.
protocol ReadinessHost: AnyObject {
  /// The engine still waits for its readiness.
  var isLaunching: Bool { get }

  /// Looks at what has been added to its log, on another thread. `then` is called on the loop, once, and never
  /// before this returns.
  func search(
    _ scan: LogScan, then: @escaping (JobOutcome<Result<Bool, SystemCallError>>) -> Void)

  /// The program that has held the port since before the worker was started, if /proc shows it; on another thread.
  /// `then` is called on the loop, once.
  func findHolder(of port: UInt16, then: @escaping (PortHolder?) -> Void)

  /// Asks once, and calls back with the answer, or the lack of one; never before this returns.
  ///
  /// - Returns: what drops the question: no answer comes then.
  func ask(
    _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void

  func isReady()
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// Finds out when one run of a worker is ready: it reports readiness, accepts connections, has written a line,
/// or answers a probe (`exec`, `httpGet`, `tcpSocket`). It looks until then, or until the launch has ended
/// otherwise. Belongs to the loop's thread.
final class ReadinessWatch {
  private static let interval = Duration.milliseconds(50)

  private let readiness: Readiness
  private let timers: any Timers
  private let host: any ReadinessHost
  private var probe: ProbeState?
  private var timer: EventLoop.Token?
  private var dropQuestion: (() -> Void)?
  private var isOver = false

  init(_ readiness: Readiness, timers: any Timers, host: any ReadinessHost) {
    self.readiness = readiness
    self.timers = timers
    self.host = host
  }

  deinit { end() }

  /// Its program runs, and the engine waits for its readiness.
  func begin() {
    guard case .probe(let probe) = readiness.rule else { return check() }
    let state = ProbeState(probe, for: .readiness)
    self.probe = state
    schedule(at: state.firstQuestion(after: timers.now))
  }

  /// The worker has reported readiness itself, which counts whatever the rule waits for.
  func saidReady() { if !readiness.isReady { becameReady() } }

  /// The run has ended.
  func end() {
    isOver = true
    stop()
  }

  private func becameReady() {
    readiness.notified()
    stop()
    host.isReady()
  }

  private func stop() {
    probe = nil
    if let timer { timers.cancel(timer) }
    timer = nil
    let drop = dropQuestion
    dropQuestion = nil
    drop?()
  }

  // MARK: what is looked at

  private func check() {
    guard !isOver, readiness.needsChecking, host.isLaunching else { return }
    if let scan = readiness.scan { return search(scan) }
    // A source that can't be looked at isn't ready yet.
    guard (try? readiness.check()) == true else { return checkLater() }
    if case .tcp(let port) = readiness.rule { confirm(port) } else { becameReady() }
  }

  /// Something accepts connections there; it may be another program.
  private func confirm(_ port: UInt16) {
    readiness.reject()
    host.findHolder(of: port) { [weak self] other in
      guard let self, !isOver, readiness.needsChecking, host.isLaunching else { return }
      // An older program may have opened the port for the worker, as a container's proxy does.
      if let other {
        complain(
          "port \(port) is held by \(other.name) (pid \(other.pid)), which was started before it and "
            + "may have answered in its place")
      }
      becameReady()
    }
  }

  private func checkLater() {
    timer = timers.after(Self.interval) { [unowned self] in
      timer = nil
      check()
    }
  }

  /// The log may be in a file system that doesn't answer, and an expression may take its time.
  private func search(_ scan: LogScan) {
    host.search(scan) { [weak self] outcome in
      guard let self, !isOver, readiness.needsChecking, timer == nil else { return }
      switch outcome {
      case .done(.success(true)): if host.isLaunching { return becameReady() }
      case .done(.success(false)), .busy: break
      case .done(.failure(let error)):
        complain("can't search its log for readiness: \(error)")
      case .overdue: complain("can't read its log: check its file system")
      }
      checkLater()
    }
  }

  /// Once for each launch.
  private func complain(_ text: String) {
    if readiness.takeComplaint() { host.log(.warning, text) }
  }

  // MARK: what is asked

  private func schedule(at moment: Instant) {
    timer = timers.at(moment) { [unowned self] in
      timer = nil
      ask()
    }
  }

  private func ask() {
    guard let asked = probe?.probe, host.isLaunching else { return }
    let began = timers.now
    dropQuestion = host.ask(asked) { [weak self] outcome in
      guard let self, dropQuestion != nil, probe != nil else { return }
      dropQuestion = nil
      if probe?.record(success: outcome == .success) == .passing { return saidReady() }
      if let next = probe?.nextQuestion(after: began, answeredAt: timers.now) {
        schedule(at: next)
      }
    }
  }
}

extension ReadinessRule {
  init(_ readiness: WorkerConfiguration.Readiness) {
    switch readiness {
    case .notify: self = .notify
    case .tcp(let port): self = .tcp(port)
    case .logLine(let text): self = .logLine(text)
    case .notificationDescriptor(let number): self = .descriptor(number)
    case .logPattern(let pattern): self = .logPattern(pattern)
    case .probe(let probe): self = .probe(probe)
    }
  }
}
