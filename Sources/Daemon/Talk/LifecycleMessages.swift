import Lifecycle
import Linux
import Policy
import Supervision
import WorkerProtocol

// What a worker hears of its own life: before it is stopped, ended, or asked to give memory back, and
// when it runs again.

extension Daemon {
  // MARK: giving memory back

  /// Whether it was asked; then its word is waited for, and not its footprint's coming to rest.
  func askToShed(
    _ runtime: WorkerRuntime, _ attempt: ShedAttempt, _ kind: Directive.ShedKind,
    until deadline: Instant
  ) -> Bool {
    guard let talk = talkHeard(by: runtime) else { return false }
    let request: DaemonMessage.Request =
      switch kind {
      case .didEnterBackground: .didEnterBackground
      case .memoryWarning:
        // A person may warn at any time (`dormouse warn`); a warning is one all the same.
        .memoryWarning(
          level: max(engine.pressure, .warning).name, footprintBytes: attempt.before.bytes)
      }
    let id = nextMessageID()
    let isAsked = talk.ask(request, id: id, within: deadline - EventLoop.now) {
      [unowned self, weak attempt] in
      guard let attempt, runtime.shed === attempt else { return }
      attempt.word = .given
      if attempt.command == nil { driver.send(.shedAnswered(runtime.id)) }
    }
    noteConnections(talk, runtime)
    guard isAsked else { return false }
    attempt.word = .awaited(id)
    talk.lastShed = id
    return true
  }

  // MARK: sleep

  /// For this long `willSuspend` is waited for.
  static let patienceBeforeSleep = Duration.milliseconds(250)
  /// From an answer to a thread that waits again: who is found at work isn't put to sleep.
  private static let settling = Duration.milliseconds(10)

  /// Calls `action` when the worker has been told that it will be stopped, and has had its moment. Not
  /// at all where it has ended meanwhile.
  func whenTold(
    _ runtime: WorkerRuntime, _ process: WorkerProcess, _ action: @escaping () -> Void
  ) {
    let goOn = { [unowned self] in
      guard runtime.process === process, !runtime.hasExited,
        engine.state(of: runtime.id) == .suspending
      else { return }
      action()
    }
    let isAsked = ask(
      runtime, .willSuspend, within: Self.patienceBeforeSleep, patience: Self.patienceBeforeSleep
    ) { [loop] answered in
      if answered { loop.after(Self.settling, goOn) } else { goOn() }
    }
    if !isAsked { action() }
  }

  /// Before the engine hears of it, which may have more to say. `why`: a clause, where it isn't the
  /// engine's cause.
  func tellAwake(_ runtime: WorkerRuntime, why: String? = nil) {
    let asleep = runtime.asleepSince.map { EventLoop.now - $0 } ?? .zero
    runtime.asleepSince = nil
    guard let talk = talkHeard(by: runtime) else { return }
    let cause = why ?? engine.snapshot(of: runtime.id)?.cause.sentence ?? ""
    tell(runtime) { .didResume(id: $0, asleepSeconds: asleep.milliseconds, cause: cause) }
    if let level = talk.level, level != engine.pressure { tellPressure(talk, runtime) }
  }

  // MARK: states and levels

  func tell(_ runtime: WorkerRuntime, of transition: Transition) {
    guard transition.to == .foreground else { return }
    tell(runtime) { .didEnterForeground(id: $0) }
  }

  /// Those who run; the others hear of it when they are woken.
  func tellPressure() {
    for runtime in workers.values where engine.state(of: runtime.id)?.runs == true {
      if let talk = talkHeard(by: runtime) { tellPressure(talk, runtime) }
    }
  }

  private func tellPressure(_ talk: WorkerTalk, _ runtime: WorkerRuntime) {
    talk.tell(.pressure(level: engine.pressure.name))
    talk.level = engine.pressure
    noteConnections(talk, runtime)
  }

  // MARK: ends

  /// Tells a worker that its task's time is over; the engine waits for the task a moment longer.
  func expireTask(_ id: WorkerID, _ task: String) {
    log(.notice, "\(id): its background task \(task) has run out of time")
    guard let runtime = workers[id] else { return }
    let moment = Engine.lastWordsOfTask
    _ = ask(runtime, .taskExpired(task: task), within: moment, patience: moment) {
      [unowned self] answered in
      if answered { driver.send(.taskEnded(id, task: task)) }
    }
  }

  /// Whether it was told that it will be ended; then `action` follows its answer, or half of the grace.
  func whenToldOfEnd(
    _ runtime: WorkerRuntime, _ process: WorkerProcess, _ action: @escaping () -> Void
  ) -> Bool {
    let grace = runtime.configuration.policy.terminate.grace
    let reason = engine.snapshot(of: runtime.id)?.cause.sentence ?? ""
    return ask(runtime, .willTerminate(reason: reason), within: grace, patience: grace / 2) { _ in
      if runtime.process === process, !runtime.hasExited, !runtime.isKilled { action() }
    }
  }
}
