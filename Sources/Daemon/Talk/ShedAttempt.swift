import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import WorkerProtocol

/// One request to free memory: on every channel that the worker has, and over `DORMOUSE_WORKER_SOCKET` if it
/// has connected. The footprint is measured before and after it. Belongs to the loop's thread.
final class ShedAttempt {
  private let kind: Directive.ShedKind
  private let deadline: Instant
  private let channel: WorkerConfiguration.Shed?
  private let conversation: WorkerConversation?
  private let http: ShedOverHTTP
  private let handle: WorkerHandle
  private let process: WorkerProcess
  private let sheds: WorkerSheds

  private var before: ByteCount
  /// The command that still runs.
  private var command: FollowedProgram?
  /// The request over HTTP that is out, or whose connection the worker may still hold.
  private var request: ShedRequest?
  private var question = Question.notAsked
  private var lastFootprint: ByteCount
  private var quietLooks = 0
  /// Until it is asked.
  private var measuring: EventLoop.Token?
  private var step = Step.measuring
  private var isOver = false

  private enum Step { case measuring, findingReceivers, asked }

  /// Over `DORMOUSE_WORKER_SOCKET`.
  private enum Question: Equatable {
    case notAsked
    case awaited(UInt64)
    case answered
  }

  /// - Parameter process: of the run that is asked.
  init(
    _ kind: Directive.ShedKind, until deadline: Instant, of worker: WorkerUnit,
    _ process: WorkerProcess, http: ShedOverHTTP, handle: WorkerHandle, sheds: WorkerSheds
  ) {
    self.kind = kind
    self.deadline = deadline
    channel = worker.configuration.shed
    conversation = worker.conversation
    self.http = http
    self.handle = handle
    self.process = process
    self.sheds = sheds
    before = handle.driver.state.footprint(of: handle.id)
    lastFootprint = before
  }

  private var id: WorkerID { handle.id }
  private var timers: any Timers { sheds.loop }

  /// Of the command, which is a child of the daemon's that nothing else may reap.
  var commandPid: Int32? { command?.program.pid }

  /// Asks when the footprint before the request is known. On a busy machine that may take longer than the
  /// worker has for its answer: after half of that time it is asked all the same.
  func begin() {
    measuring = timers.after((deadline - timers.now) / 2) { [weak self] in self?.findReceivers() }
    measure { [weak self] footprint in
      guard let self, !isOver, step == .measuring else { return }
      if let footprint {
        before = footprint
        lastFootprint = footprint
      }
      findReceivers()
    }
  }

  private func findReceivers() {
    guard !isOver, step == .measuring else { return }
    step = .findingReceivers
    stopTimer()
    guard case .signal = channel else { return ask(nil) }
    sheds.scanner.withTree(of: process) { [weak self] tree in
      guard let self, !isOver, handle.worker?.process === process else { return }
      ask(tree)
    }
  }

  /// Calls back unless the run is over by then; nil: it couldn't be measured.
  private func measure(then: @escaping (ByteCount?) -> Void) {
    guard let worker = handle.worker else { return }
    sheds.meter.measure(worker) { [weak worker, process] measurement in
      // It may have ended and been started again meanwhile.
      if worker?.process === process { then(measurement?.footprint) }
    }
  }

  private func ask(_ tree: ProcessTree?) {
    step = .asked
    // It has returned while its footprint was measured, and has its message of that already.
    if kind == .didEnterBackground, handle.state == .foreground {
      return handle.send(.shedAnswered(id))
    }
    var isAsked = false
    for channel in channels {
      do throws(ShedRefusal) {
        try ask(on: channel, tree)
        isAsked = true
      } catch { handle.log(.notice, "\(error)") }
    }
    if case .http(let request) = channel {
      self.request = http.ask(request, until: deadline) { [weak self] in self?.responded($0) }
    }
    if askOverSocket() || request != nil { isAsked = true }
    if !isAsked { return handle.send(.shedAnswered(id)) }
    if command == nil, request == nil { lookWhetherItRests() }
  }

  private func ask(on channel: ShedChannel, _ tree: ProcessTree?) throws(ShedRefusal) {
    if case .signal(let signal) = channel {
      return try sheds.processes.signal(process, signal, ifHandledIn: tree)
    }
    let run = try ShedRequestRun.start(
      channel, worker: process, watch: conversation?.pressureListeners)
    guard let program = run.command else { return }
    command = FollowedProgram(program, sheds.loop) { [weak self] in
      self?.commandHasEnded(program.phase)
    }
  }

  private var channels: [ShedChannel] {
    var channels: [ShedChannel] = []
    switch channel {
    case .signal(let number): channels.append(.signal(number))
    case .command(let arguments): channels.append(.command(arguments))
    case .http, .notify, nil: break
    }
    if conversation?.pressureListeners != nil { channels.append(.notify) }
    return channels
  }

  /// Whether it was asked; then its answer is waited for, and not a footprint that rests.
  private func askOverSocket() -> Bool {
    let request: DaemonMessage.Request =
      switch kind {
      case .didEnterBackground: .didEnterBackground
      case .memoryWarning:
        // The operator may warn at any time (`dormouse warn`), and that counts as a warning too.
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

  private func commandHasEnded(_ phase: SideProgram.Phase) {
    guard !isOver else { return }
    switch phase {
    case .ended(.exited(0)): break
    case .ended(let exit): handle.log(.warning, "its shed command failed: \(exit)")
    case .failed(let error): handle.log(.warning, "its shed command did not start: \(error)")
    default: break
    }
    command = nil
    if question == .answered { return handle.send(.shedAnswered(id)) }
    lookWhetherItRests()
  }

  private func responded(_ outcome: ProbeRunner.Outcome) {
    request = nil
    switch outcome {
    case .success:
      // It is asked over its socket as well, and answers itself.
      if case .awaited = question { return }
      handle.send(.shedAnswered(id))
    case .failure(let why):
      handle.log(.warning, "its shed request failed: \(why)")
      if question == .answered { return handle.send(.shedAnswered(id)) }
      lookWhetherItRests()
    }
  }

  /// A signal can't be answered, and a command may only pass a signal on. What was asked for counts as
  /// answered when the footprint, looked at every 100 ms, has come to rest: for three looks once it has
  /// fallen, for a second where it hasn't.
  private func lookWhetherItRests() {
    // A worker that answers itself is asked, and its footprint isn't watched.
    guard !isOver, conversation?.answersItself != true, question == .notAsked else { return }
    timers.after(.milliseconds(100)) { [weak self] in
      guard let self, !isOver else { return }
      measure { [weak self] footprint in
        guard let self, !isOver else { return }
        look(at: footprint ?? lastFootprint)
      }
    }
  }

  private func look(at now: ByteCount) {
    let moved = (now - lastFootprint).bytes.magnitude
    quietLooks = moved < 64 * 1024 ? quietLooks + 1 : 0
    lastFootprint = now
    // Nothing so far: it may not have begun.
    let wanted = now < before - .kilobytes(64) ? 3 : 10
    if quietLooks >= wanted { handle.send(.shedAnswered(id)) } else { lookWhetherItRests() }
  }

  // MARK: the end

  /// Its time is over, or it was answered: reports what was freed.
  func finish() {
    // Too late for the request, but the watchdog isn't to wait for a worker that has hung up, or that wasn't asked.
    if case .awaited(let number) = question, conversation?.isAbandoned(number) == true {
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

  /// Nothing waits for it any more.
  func end() {
    guard !isOver else { return }
    isOver = true
    stopTimer()
    if let hang = command?.program.hang {
      handle.log(.warning, "its shed command did not start: \(hang)")
    }
    command?.cancel()
    command = nil
    if let request, http.drop(request) {
      handle.log(.warning, "its shed request failed: no answer in time")
    }
    request = nil
    if case .awaited(let number) = question { conversation?.withdraw(number) }
  }

  private func stopTimer() {
    if let measuring { timers.cancel(measuring) }
    measuring = nil
  }
}
