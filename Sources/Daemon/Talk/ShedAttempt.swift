import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// One request to shed memory: what it had before, and what was started for it.
final class ShedAttempt {
  fileprivate(set) var before: ByteCount
  var runs: [ShedRequestRun] = []
  /// The command that still runs; it is followed on the loop.
  var command: FollowedProgram?
  /// A request over HTTP that is out, or whose connection the worker may still hold.
  var request: ShedRequest?
  /// Of a worker that speaks the protocol.
  var word = Word.notAsked
  var lastFootprint: ByteCount
  var quietLooks = 0

  init(before: ByteCount) {
    self.before = before
    lastFootprint = before
  }

  fileprivate func start(at footprint: ByteCount?) {
    guard let footprint else { return }
    before = footprint
    lastFootprint = footprint
  }

  enum Word: Equatable {
    case notAsked
    /// The request's id.
    case awaited(UInt64)
    case given
  }

  var commandPids: [Int32] { runs.compactMap { $0.command?.pid } }
}

extension Daemon {
  /// Asks on every channel that the worker has, and by word where it has connected.
  func beginShed(_ id: WorkerID, _ kind: Directive.ShedKind, until deadline: Instant) {
    guard let runtime = workers[id], let process = runtime.process else { return }
    endShed(runtime)
    let attempt = ShedAttempt(before: engine.footprint(of: id))
    runtime.shed = attempt
    // What it has before it is asked.
    measure(runtime) { [unowned self] measurement in
      guard runtime.shed === attempt, runtime.process === process else { return }
      attempt.start(at: measurement?.footprint)
      ask(runtime, attempt, process, kind, until: deadline)
    }
  }

  private func ask(
    _ runtime: WorkerRuntime, _ attempt: ShedAttempt, _ process: WorkerProcess,
    _ kind: Directive.ShedKind, until deadline: Instant
  ) {
    guard case .signal = runtime.configuration.shed else {
      return ask(runtime, attempt, process, kind, until: deadline, nil)
    }
    withTree(of: process) { [unowned self] tree in
      guard runtime.shed === attempt, runtime.process === process else { return }
      ask(runtime, attempt, process, kind, until: deadline, tree)
    }
  }

  private func ask(
    _ runtime: WorkerRuntime, _ attempt: ShedAttempt, _ process: WorkerProcess,
    _ kind: Directive.ShedKind, until deadline: Instant, _ tree: ProcessTree?
  ) {
    let id = runtime.id
    for channel in channels(of: runtime) {
      do throws(ShedRefusal) {
        let run = try ShedRequestRun.start(
          channel, worker: process, watch: runtime.pressure, tree: tree)
        attempt.runs.append(run)
        if let command = run.command { follow(command, of: attempt, runtime) }
      } catch { log(.notice, "\(id): \(error)") }
    }
    if case .http(let request) = runtime.configuration.shed {
      askOverHTTP(request, attempt, runtime, process, until: deadline)
    }
    let isAsked = askToShed(runtime, attempt, kind, until: deadline)
    if attempt.runs.isEmpty, attempt.request == nil, !isAsked {
      return driver.send(.shedAnswered(id))
    }
    if attempt.command == nil, attempt.request == nil { lookWhetherItRests(runtime, attempt) }
  }

  private func channels(of runtime: WorkerRuntime) -> [ShedChannel] {
    var channels: [ShedChannel] = []
    switch runtime.configuration.shed {
    case .signal(let number): channels.append(.signal(number))
    case .command(let arguments): channels.append(.command(arguments))
    case .http, .notify, nil: break
    }
    if runtime.pressure.map({ $0.listenerCount > 0 }) == true { channels.append(.notify) }
    return channels
  }

  private func follow(
    _ command: SideProgram, of attempt: ShedAttempt, _ runtime: WorkerRuntime
  ) {
    attempt.command = FollowedProgram(command, loop) { [unowned self, unowned attempt] in
      commandHasEnded(command, attempt, runtime)
    }
  }

  private func commandHasEnded(
    _ command: SideProgram, _ attempt: ShedAttempt, _ runtime: WorkerRuntime
  ) {
    switch command.phase {
    case .ended(.exited(0)): break
    case .ended(let exit): log(.warning, "\(runtime.id): its shed command failed: \(exit)")
    case .failed(let error):
      log(.warning, "\(runtime.id): its shed command didn't start: \(error)")
    default: break
    }
    attempt.command = nil
    if attempt.word == .given { return driver.send(.shedAnswered(runtime.id)) }
    lookWhetherItRests(runtime, attempt)
  }

  /// A signal can't be answered, and a command may only pass a signal on. What was asked for counts as
  /// answered when the footprint, looked at every 100 ms, has come to rest: for three looks once it has
  /// fallen, for a second where it hasn't.
  func lookWhetherItRests(_ runtime: WorkerRuntime, _ attempt: ShedAttempt) {
    // Who answers itself is asked, and not watched.
    guard runtime.shed === attempt, !runtime.answersItself, attempt.word == .notAsked else {
      return
    }
    loop.after(.milliseconds(100)) { [unowned self] in
      guard runtime.shed === attempt else { return }
      measure(runtime) { [unowned self] measurement in
        guard runtime.shed === attempt else { return }
        look(at: measurement?.footprint ?? attempt.lastFootprint, runtime, attempt)
      }
    }
  }

  private func look(at now: ByteCount, _ runtime: WorkerRuntime, _ attempt: ShedAttempt) {
    let moved = (now - attempt.lastFootprint).bytes.magnitude
    attempt.quietLooks = moved < 64 * 1024 ? attempt.quietLooks + 1 : 0
    attempt.lastFootprint = now
    // Nothing so far: it may not have begun.
    let wanted = now < attempt.before - .kilobytes(64) ? 3 : 10
    if attempt.quietLooks >= wanted {
      driver.send(.shedAnswered(runtime.id))
    } else {
      lookWhetherItRests(runtime, attempt)
    }
  }

  /// The worker said so itself (`X_DORMOUSE_DONE=1`), be it too late: the watchdog wants to know.
  func shedAnswered(_ runtime: WorkerRuntime) {
    if !runtime.answersItself {
      runtime.answersItself = true
      tellChannels(of: runtime)
    }
    driver.send(.shedAnswered(runtime.id))
  }

  func finishShed(_ id: WorkerID) {
    guard let runtime = workers[id], let attempt = runtime.shed else {
      // Nothing was begun; the engine must not wait for ever all the same.
      return driver.send(.shedFinished(id, before: .zero, after: .zero))
    }
    if case .awaited(let request) = attempt.word, runtime.talk?.isAbandoned(request) == true {
      // Too late for the request, but the watchdog isn't to wait for who isn't there any more.
      driver.send(.shedAnswered(id))
    }
    endShed(runtime)
    let process = runtime.process
    measure(runtime) { [unowned self] measurement in
      // It may have ended and been started again meanwhile.
      guard runtime.process === process else { return }
      let after = measurement?.footprint ?? attempt.before
      log(.info, "\(id): shed \(attempt.before) → \(after)")
      driver.send(.shedFinished(id, before: attempt.before, after: after))
    }
  }

  func endShed(_ runtime: WorkerRuntime) {
    guard let attempt = runtime.shed else { return }
    if let hang = attempt.command?.program.hang {
      log(.warning, "\(runtime.id): its shed command didn't start: \(hang)")
    }
    attempt.command?.cancel()
    attempt.command = nil
    endRequest(of: attempt, runtime)
    if case .awaited(let id) = attempt.word { runtime.talk?.close(id) }
    runtime.shed = nil
  }
}
