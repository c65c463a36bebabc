import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import WorkerProtocol

/// What a `ShedAttempt` needs of the daemon, about one run of one worker. Tests provide their own.
protocol ShedHost: AnyObject {
  /// The engine's.
  var footprint: ByteCount { get }
  var pressure: PressureLevel { get }
  var isInForeground: Bool { get }
  /// Calls back unless the run is over by then; nil: it couldn't be measured.
  func measure(then: @escaping (ByteCount?) -> Void)
  /// The same for its processes.
  func findTree(then: @escaping (ProcessTree?) -> Void)

  /// Asks on a channel.
  ///
  /// - Parameter ended: called once when a command has ended, never before this returns.
  /// - Returns: the command; nil: the channel has none.
  func ask(
    on channel: ShedChannel, _ tree: ProcessTree?, ended: @escaping (SideProgram.Phase) -> Void
  ) throws(ShedRefusal) -> (any ShedCommand)?

  func send(_ event: Event)
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// A command of `shed:` that was started.
protocol ShedCommand: AnyObject {
  var pid: Int32? { get }
  /// Why it hangs before its start; nil: it doesn't.
  var hang: String? { get }
  func cancel()
}

/// One request to free memory: on every channel that the worker has, and over `DORMOUSE_WORKER_SOCKET` if it
/// has connected. The footprint is measured before and after it. Belongs to the loop's thread.
final class ShedAttempt {
  private let id: WorkerID
  private let kind: Directive.ShedKind
  private let deadline: Instant
  private let channel: WorkerConfiguration.Shed?
  private let conversation: WorkerConversation?
  private let http: ShedOverHTTP
  private let timers: any Timers
  private let host: any ShedHost

  private var before: ByteCount
  /// The command that still runs.
  private var command: (any ShedCommand)?
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

  init(
    _ id: WorkerID, kind: Directive.ShedKind, until deadline: Instant,
    on channel: WorkerConfiguration.Shed?, conversation: WorkerConversation?,
    http: ShedOverHTTP, timers: any Timers, host: any ShedHost
  ) {
    self.id = id
    self.kind = kind
    self.deadline = deadline
    self.channel = channel
    self.conversation = conversation
    self.http = http
    self.timers = timers
    self.host = host
    before = host.footprint
    lastFootprint = before
  }

  /// Of the command, which is a child of the daemon's that nothing else may reap.
  var commandPid: Int32? { command?.pid }

  /// Asks when the footprint before the request is known. On a busy machine that may take longer than the
  /// worker has for its answer: after half of that time it is asked all the same.
  func begin() {
    measuring = timers.after((deadline - timers.now) / 2) { [weak self] in self?.findReceivers() }
    host.measure { [weak self] footprint in
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
    host.findTree { [weak self] tree in
      guard let self, !isOver else { return }
      ask(tree)
    }
  }

  private func ask(_ tree: ProcessTree?) {
    step = .asked
    // It has returned while its footprint was measured, and has its message of that already.
    if kind == .didEnterBackground, host.isInForeground { return host.send(.shedAnswered(id)) }
    var isAsked = false
    for channel in channels {
      do throws(ShedRefusal) {
        let command = try host.ask(on: channel, tree) { [weak self] in self?.commandHasEnded($0) }
        if let command { self.command = command }
        isAsked = true
      } catch { host.log(.notice, "\(error)") }
    }
    if case .http(let request) = channel {
      self.request = http.ask(request, until: deadline) { [weak self] in self?.responded($0) }
    }
    if askOverSocket() || request != nil { isAsked = true }
    if !isAsked { return host.send(.shedAnswered(id)) }
    if command == nil, request == nil { lookWhetherItRests() }
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
          level: max(host.pressure, .warning).name, footprintBytes: before.bytes)
      }
    let number = conversation?.askForMemory(request, within: deadline - timers.now) {
      [weak self] reply in
      guard let self, reply == .answered, !isOver else { return }
      question = .answered
      if command == nil { host.send(.shedAnswered(id)) }
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
    case .ended(let exit): host.log(.warning, "its shed command failed: \(exit)")
    case .failed(let error): host.log(.warning, "its shed command did not start: \(error)")
    default: break
    }
    command = nil
    if question == .answered { return host.send(.shedAnswered(id)) }
    lookWhetherItRests()
  }

  private func responded(_ outcome: ProbeRunner.Outcome) {
    request = nil
    switch outcome {
    case .success:
      // It is asked over its socket as well, and answers itself.
      if case .awaited = question { return }
      host.send(.shedAnswered(id))
    case .failure(let why):
      host.log(.warning, "its shed request failed: \(why)")
      if question == .answered { return host.send(.shedAnswered(id)) }
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
      host.measure { [weak self] footprint in
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
    if quietLooks >= wanted { host.send(.shedAnswered(id)) } else { lookWhetherItRests() }
  }

  // MARK: the end

  /// Its time is over, or it was answered: reports what was freed.
  func finish() {
    // Too late for the request, but the watchdog isn't to wait for a worker that has hung up, or that wasn't asked.
    if case .awaited(let number) = question, conversation?.isAbandoned(number) == true {
      host.send(.shedAnswered(id))
    } else if step != .asked {
      host.send(.shedAnswered(id))
    }
    end()
    host.measure { [id, before, host] footprint in
      let after = footprint ?? before
      host.log(.info, "memory request: \(before) → \(after)")
      host.send(.shedFinished(id, before: before, after: after))
    }
  }

  /// Nothing waits for it any more.
  func end() {
    guard !isOver else { return }
    isOver = true
    stopTimer()
    if let hang = command?.hang { host.log(.warning, "its shed command did not start: \(hang)") }
    command?.cancel()
    command = nil
    if let request, http.drop(request) {
      host.log(.warning, "its shed request failed: no answer in time")
    }
    request = nil
    if case .awaited(let number) = question { conversation?.withdraw(number) }
  }

  private func stopTimer() {
    if let measuring { timers.cancel(measuring) }
    measuring = nil
  }
}
