import Lifecycle
import Linux
import Policy
import Supervision

/// Determines when one run of a worker is ready: the worker reports readiness, accepts connections,
/// has written a line, or answers a probe (`exec`, `httpGet`, `tcpSocket`). It polls until then, or
/// until the launch has ended in another way. Belongs to the loop's thread.
final class ReadinessWatch {
  private static let interval = Duration.milliseconds(50)

  /// The timeout of a search in the log, and of the search for the program that has a port.
  private static let jobTimeout = Duration.seconds(10)

  private let readiness: Readiness
  private let process: WorkerProcess
  private let handle: WorkerHandle
  private let timers: any Timers
  private unowned let holder: ProcessHolder
  private var probe: ProbeState?
  private var timer: EventLoop.Token?
  private var cancelQuestion: (() -> Void)?
  private var isOver = false

  init(
    _ rule: ReadinessRule, _ process: WorkerProcess, of handle: WorkerHandle,
    heldBy holder: ProcessHolder
  ) {
    readiness = Readiness(rule, worker: process)
    self.process = process
    self.handle = handle
    self.holder = holder
    timers = holder.loop
  }

  deinit { end() }

  /// Begins to check. The worker's program runs, and the engine waits for its readiness.
  func begin() {
    guard case .probe(let probe) = readiness.rule else { return check() }
    let state = ProbeState(probe, for: .readiness)
    self.probe = state
    schedule(at: state.firstQuestion(after: timers.now))
  }

  /// The worker has reported readiness itself. That counts, whichever condition the rule has.
  func didReportReady() { if !readiness.isReady { becomeReady() } }

  /// The run has ended.
  func end() {
    isOver = true
    stop()
  }

  private func becomeReady() {
    readiness.didNotify()
    stop()
    // A wrapper script may have executed the real program by now.
    if let worker = handle.worker { holder.refreshMemory(of: worker) }
    handle.send(.ready(handle.id))
  }

  /// Whether the engine still waits for the worker's readiness.
  private var isLaunching: Bool {
    handle.worker?.process === process && handle.state == .launching
  }

  private func stop() {
    probe = nil
    if let timer { timers.cancel(timer) }
    timer = nil
    let cancel = cancelQuestion
    cancelQuestion = nil
    cancel?()
  }

  // MARK: log and port

  private func check() {
    guard !isOver, readiness.needsChecking, isLaunching else { return }
    if let scan = readiness.scan { return search(scan) }
    // A source that can't be read isn't ready yet.
    guard (try? readiness.check()) == true else { return checkLater() }
    if case .tcp(let port) = readiness.rule { confirm(port) } else { becomeReady() }
  }

  /// Finds out which program accepts connections at the port; it may be another one.
  private func confirm(_ port: UInt16) {
    readiness.reject()
    let (root, session, cgroup) = (process.identity, process.session, process.cgroup)
    let processes = holder.processes
    holder.jobs.run(about: "port of \(handle.id)", within: Self.jobTimeout) {
      processes.holder(of: port, earlierThan: root, session: session, cgroup: cgroup)
    } then: { [weak self] outcome in
      guard let self, !isOver, readiness.needsChecking, isLaunching else { return }
      // The worker counts as ready even then: an older program may have opened the port for it, as
      // a container's proxy does.
      if case .done(let other?) = outcome {
        warn(
          "port \(port) is held by \(other.name) (pid \(other.pid)), which was started before it "
            + "and may have answered in its place")
      }
      becomeReady()
    }
  }

  private func checkLater() {
    timer = timers.after(Self.interval) { [unowned self] in
      timer = nil
      check()
    }
  }

  /// Searches the log on another thread: it may be in a file system that doesn't respond, and
  /// matching an expression may take long.
  private func search(_ scan: LogScan) {
    holder.jobs.run(about: "log of \(handle.id)", within: Self.jobTimeout) {
      Result { () throws(SystemCallError) in try scan.scan() }
    } then: { [weak self] outcome in
      guard let self, !isOver, readiness.needsChecking, timer == nil else { return }
      switch outcome {
      case .done(.success(true)): if isLaunching { return becomeReady() }
      case .done(.success(false)), .busy: break
      case .done(.failure(let error)):
        warn("can't search its log for readiness: \(error)")
      case .overdue: warn("can't read its log: check its file system")
      }
      checkLater()
    }
  }

  /// Logs a warning, once for each launch.
  private func warn(_ text: String) {
    if readiness.recordFailure() { handle.log(.warning, text) }
  }

  // MARK: probes

  private func schedule(at moment: Instant) {
    timer = timers.at(moment) { [unowned self] in
      timer = nil
      ask()
    }
  }

  private func ask() {
    guard let asked = probe?.probe, isLaunching else { return }
    let began = timers.now
    cancelQuestion = holder.probes.put(asked, to: process) { [weak self] outcome in
      guard let self, cancelQuestion != nil, probe != nil else { return }
      cancelQuestion = nil
      if probe?.record(success: outcome == .success) == .passing { return didReportReady() }
      if let next = probe?.nextQuestion(after: began, answeredAt: timers.now) {
        schedule(at: next)
      }
    }
  }
}
