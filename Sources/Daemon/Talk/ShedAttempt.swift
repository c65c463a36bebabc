import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import WorkerProtocol

/// One request to a worker to free memory. It uses each channel that the worker has, and
/// `DORMOUSE_WORKER_SOCKET` if the worker has connected. The footprint is measured before and after
/// it. It belongs to the event loop's thread.
final class ShedAttempt {
  private let kind: Directive.ShedKind
  private let deadline: Instant
  private let channel: WorkerConfiguration.Shed?
  private let conversation: WorkerConversation?
  private let handle: WorkerHandle
  private let process: WorkerProcess
  private let sheds: WorkerSheds

  private var before: ByteCount
  /// The shed command, while it runs.
  private var command: FollowedProgram?
  /// The HTTP request that has no answer yet, or whose connection the worker may still have open.
  private var request: QuietQuestion?
  private var question = Question.notAsked
  private var lastFootprint: ByteCount
  private var stableCount = 0
  /// The timer that limits how long the first measurement may delay the request.
  private let measuring: TimedOperation
  private var step = Step.measuring
  private var isOver = false

  private enum Step { case measuring, findingReceivers, asked }

  /// The state of the question over `DORMOUSE_WORKER_SOCKET`.
  private enum Question: Equatable {
    case notAsked
    case awaited(UInt64)
    case answered
  }

  /// - Parameter process: the process of the run that is asked.
  init(
    _ kind: Directive.ShedKind, until deadline: Instant, of worker: WorkerUnit,
    _ process: WorkerProcess, handle: WorkerHandle, sheds: WorkerSheds
  ) {
    self.kind = kind
    self.deadline = deadline
    channel = worker.configuration.shed
    conversation = worker.conversation
    self.handle = handle
    self.process = process
    self.sheds = sheds
    measuring = TimedOperation(sheds.loop)
    before = handle.driver.state.footprint(of: handle.id)
    lastFootprint = before
  }

  private var id: WorkerID { handle.id }
  private var timers: any Timers { sheds.loop }

  /// The pid of the shed command. It is a child of the daemon that nothing else may reap.
  var commandPid: Int32? { command?.program.pid }

  /// Begins the request. The worker is asked as soon as its footprint is measured. On a busy
  /// machine that may take longer than the time for the answer, so after half of that time the
  /// worker is asked without a measurement.
  func begin() {
    measuring.wait((deadline - timers.now) / 2) { [weak self] in self?.findReceivers() }
    measure { [weak self] footprint in
      guard let self, !isOver, step == .measuring else { return }
      if let footprint { (before, lastFootprint) = (footprint, footprint) }
      findReceivers()
    }
  }

  private func findReceivers() {
    guard !isOver, step == .measuring else { return }
    step = .findingReceivers
    measuring.cancel()
    guard case .signal = channel else { return ask(nil) }
    sheds.scanner.withTree(of: process) { [weak self] tree in
      guard let self, !isOver, handle.worker?.process === process else { return }
      ask(tree)
    }
  }

  /// Measures the footprint and calls back, unless the run has ended by then. The argument is nil
  /// if the measurement failed.
  private func measure(then: @escaping (ByteCount?) -> Void) {
    guard let worker = handle.worker else { return }
    sheds.meter.measure(worker) { [weak worker, process] measurement in
      // The worker may have ended and been started again meanwhile.
      if worker?.process === process { then(measurement?.footprint) }
    }
  }

  private func ask(_ tree: ProcessTree?) {
    step = .asked
    // The worker came to the foreground while its footprint was measured, and already has the
    // message about that.
    if kind == .didEnterBackground, handle.state == .foreground {
      return handle.send(.shedAnswered(id))
    }
    var isAsked = false
    switch channel {
    case .signal(let signal):
      isAsked = attempt { () throws(ShedRefusal) in
        try sheds.processes.signal(process, signal, ifHandledIn: tree)
      }
    case .command(let arguments):
      start(arguments)
      isAsked = true
    case .http, .notify, nil: break
    }
    if let listeners = conversation?.pressure?.listened,
      attempt({ () throws(ShedRefusal) in try listeners.requestMemory() })
    {
      isAsked = true
    }
    if case .http(let request) = channel { askOverHTTP(request) }
    if askOverSocket() || request != nil { isAsked = true }
    if !isAsked { return handle.send(.shedAnswered(id)) }
    if command == nil, request == nil { checkIfStable() }
  }

  /// Makes a request, and logs a refusal.
  ///
  /// - Returns: whether the worker was asked.
  private func attempt(_ request: () throws(ShedRefusal) -> Void) -> Bool {
    do throws(ShedRefusal) {
      try request()
      return true
    } catch {
      handle.log(.notice, "\(error)")
      return false
    }
  }

  private func start(_ arguments: [String]) {
    let program = process.runBeside(arguments, as: "shed command")
    command = FollowedProgram(program, sheds.loop) { [weak self] in
      self?.didEndCommand(program.phase)
    }
  }

  /// Asks over `DORMOUSE_WORKER_SOCKET`.
  ///
  /// - Returns: whether the worker was asked. If it was, the attempt waits for its answer and not
  ///   for a stable footprint.
  private func askOverSocket() -> Bool {
    let request: DaemonMessage.Request =
      switch kind {
      case .didEnterBackground: .didEnterBackground
      case .memoryWarning:
        // The operator may warn at any time (`dormouse warn`); that counts as a warning too.
        .memoryWarning(
          level: max(handle.driver.state.pressure, .warning).name, footprintBytes: before.bytes)
      }
    let number = conversation?.askForMemory(request, within: deadline - timers.now) {
      [weak self] reply in
      guard let self, reply == .answered, !isOver else { return }
      question = .answered
      if command == nil { handle.send(.shedAnswered(id)) }
    }
    guard let number else { return false }
    question = .awaited(number)
    return true
  }

  // MARK: answers

  private func didEndCommand(_ phase: SideProgram.Phase) {
    guard !isOver else { return }
    switch phase {
    case .ended(.exited(0)): break
    case .ended(let exit): handle.log(.warning, "its shed command failed: \(exit)")
    case .failed(let error): handle.log(.warning, "its shed command did not start: \(error)")
    default: break
    }
    command = nil
    if question == .answered { return handle.send(.shedAnswered(id)) }
    checkIfStable()
  }

  /// Sends the request of `shed: { http: … }`, as a probe does, with the deadline of this attempt.
  /// If the deadline has passed, nothing is sent.
  private func askOverHTTP(_ request: Policy.Probe.HTTPRequest) {
    guard deadline > timers.now, let worker = handle.worker else { return }
    let question = QuietQuestion(to: worker, process, by: sheds.liveness)
    self.request = question
    // The reading keeps the question: its traffic counts even if this attempt ends meanwhile.
    question.readEarlierTraffic { [weak self] in
      guard let self, !isOver else { return }
      // If the deadline has passed meanwhile, the probe fails at once.
      let timeout = max(deadline - timers.now, .milliseconds(1))
      question.ask(Policy.Probe(.http(request), timeout: timeout)) { [weak self] in
        if let outcome = $0 { self?.responded(outcome) }
      }
    }
  }

  private func responded(_ outcome: ProbeRunner.Outcome) {
    request = nil
    switch outcome {
    case .success:
      // The worker was asked over its socket as well, and answers there.
      if case .awaited = question { return }
      handle.send(.shedAnswered(id))
    case .failure(let reason), .unasked(let reason):
      handle.log(.warning, "its shed request failed: \(reason)")
      if question == .answered { return handle.send(.shedAnswered(id)) }
      checkIfStable()
    }
  }

  /// Waits until the footprint is stable. A signal can't be answered, and a command may only pass a
  /// signal on. So the footprint is measured every 100 ms, and the request counts as answered when
  /// the footprint hasn't changed for three measurements after it has fallen, or for ten (1 s) if
  /// it hasn't.
  private func checkIfStable() {
    // If the worker answers by itself or was asked over its socket, its answer counts and not its
    // footprint.
    guard !isOver, conversation?.answersItself != true, question == .notAsked else { return }
    timers.after(.milliseconds(100)) { [weak self] in
      guard let self, !isOver else { return }
      measure { [weak self] footprint in
        guard let self, !isOver else { return }
        checkStability(footprint ?? lastFootprint)
      }
    }
  }

  private func checkStability(_ now: ByteCount) {
    let moved = (now - lastFootprint).bytes.magnitude
    stableCount = moved < 64 * 1024 ? stableCount + 1 : 0
    lastFootprint = now
    // While nothing has been freed, the worker may not have begun yet.
    let wanted = now < before - .kilobytes(64) ? 3 : 10
    if stableCount >= wanted { handle.send(.shedAnswered(id)) } else { checkIfStable() }
  }

  // MARK: end

  /// Ends the attempt, at the deadline or after the answer, and reports how much was freed.
  func finish() {
    // It is too late for this request. But the watchdog mustn't wait for a worker that has closed
    // its connections, or that wasn't asked.
    if case .awaited(let number) = question, conversation?.talk?.isAbandoned(number) == true {
      handle.send(.shedAnswered(id))
    } else if step != .asked {
      handle.send(.shedAnswered(id))
    }
    end()
    measure { [handle, before] footprint in
      let after = footprint ?? before
      handle.log(.info, "memory request: \(before) → \(after)")
      handle.send(.shedFinished(handle.id, before: before, after: after))
    }
  }

  /// Ends the attempt. Nothing waits for it any more.
  func end() {
    guard !isOver else { return }
    isOver = true
    measuring.cancel()
    if let hang = command?.program.hang {
      handle.log(.warning, "its shed command did not start: \(hang)")
    }
    command?.cancel()
    command = nil
    if let request, request.isUnanswered {
      request.drop()
      handle.log(.warning, "its shed request failed: no answer in time")
    }
    request = nil
    if case .awaited(let number) = question { conversation?.talk?.close(number) }
  }
}
