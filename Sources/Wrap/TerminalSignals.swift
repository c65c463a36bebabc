import Daemon
import Glibc
import Policy

/// Handles the signals of a wrapper whose program has its terminal. Program and wrapper are in one
/// process group, as if the shell had started the program itself, so most signals reach both.
/// Signals that reach the wrapper alone are passed on (`SignalWitness`). It belongs to the loop's
/// thread.
final class TerminalSignals {
  private let program: any ProgramProcesses
  private let timers: any Timers
  private let wrapperGroup: Int32
  private let stops: StopFollower

  private struct Arrival {
    var signal: Int32
    var at: Instant
    /// True if the program existed, so that it could receive the signal, too.
    var hadProgram: Bool
    /// True if the end of the program's sleep drops the signal.
    var isLost: Bool
  }

  /// Signals that the wrapper has received and that the witness wasn't asked about yet.
  private var undecided: [Arrival] = []
  /// Signals that the witness was asked about and hasn't answered yet.
  private var asked: [Arrival] = []
  /// The signals that the witness has reported, and when.
  private var seen: [Int32: [Instant]] = [:]
  private var question: LoopToken?
  private var hasWitness = true
  /// Signals for a sleeping program. They wait until it runs.
  private var waiting: [Int32] = []
  /// The group in which the witness is, if that isn't the wrapper's group.
  private var joined: Int32?
  private var foregroundTimer: LoopToken?
  /// The group of another job that had the terminal at the last check.
  private var otherForeground: Int32?
  /// The group whose SIGTSTP is lost, and is sent again.
  private var stopped: Int32?

  /// The time to wait for the other members of a group. The kernel sends a signal to them one after
  /// the other, without a pause.
  static let deliveryDelay = Duration.milliseconds(5)
  /// The time to wait for the witness. It answers within microseconds unless it was stopped.
  static let answerLimit = Duration.milliseconds(500)
  /// The interval at which the foreground group is checked. A shell that brings a job to the
  /// foreground sends no signal if the job wasn't stopped.
  static let foregroundPollInterval = Duration.milliseconds(500)
  /// A report of the witness isn't matched with a signal that arrived this much later.
  private static let staleAfter = Duration.seconds(1)

  init(
    _ program: any ProgramProcesses, timers: any Timers, wrapperGroup: Int32 = getpgrp()
  ) {
    self.program = program
    self.timers = timers
    self.wrapperGroup = wrapperGroup
    stops = StopFollower(program, timers: timers, wrapperGroup: wrapperGroup)
    stops.isAboutToContinue = { [unowned self] in
      (undecided + asked).contains { $0.signal == SIGCONT }
    }
  }

  // MARK: what arrives

  func receive(_ signal: Int32) {
    if signal == SIGCHLD {
      program.reap()
      return stops.follow()
    }
    if signal == SIGCONT {
      stops.didContinue()
      // SIGCONT removes pending SIGTSTP, as it does in the kernel.
      undecided.removeAll { $0.signal == SIGTSTP }
      asked.removeAll { $0.signal == SIGTSTP }
      waiting.removeAll { $0 == SIGTSTP }
      stopped = nil
    }
    let isLost = signal == SIGTSTP && program.losesStops && !program.ignores(signal)
    undecided.append(
      Arrival(signal: signal, at: timers.now, hadProgram: program.hasProcess, isLost: isLost))
    wake(for: signal)
    if question == nil { question = timers.after(Self.deliveryDelay) { [unowned self] in ask() } }
  }

  func receive(_ report: WitnessReport) {
    switch report {
    case .answer: decide()
    case .signal(let signal):
      if joined == nil { seen[signal, default: []].append(timers.now) }
      if signal == SIGTSTP, program.losesStops, !program.ignores(signal) {
        stopped = joined ?? wrapperGroup
      }
      wake(for: signal)
    }
  }

  /// Passes on all signals from now on, because it isn't known which of them the program has
  /// received.
  func didLoseWitness() {
    hasWitness = false
    if !asked.isEmpty { decide() }
  }

  private func wake(for signal: Int32) {
    guard program.hasProcess, program.isAsleep else { return }
    // A program isn't woken for a signal that it would drop.
    if signal == SIGWINCH, !program.catches(signal) { return }
    if signal != SIGCONT, program.ignores(signal) { return }
    program.wake(Signals.text(signal))
  }

  // MARK: what is passed on

  private func ask() {
    asked += undecided
    undecided = []
    guard hasWitness else { return decide() }
    program.askWitness()
    question = timers.after(Self.answerLimit) { [unowned self] in
      // The wrapper may have been stopped in the meantime. What arrived before is read first: the
      // answer, or the SIGCONT after which a SIGTSTP isn't valid any more.
      question = timers.after(Self.deliveryDelay) { [unowned self] in decide() }
    }
  }

  private func decide() {
    if let question { timers.cancel(question) }
    question = nil
    let inGroup = asked.isEmpty ? false : program.sharesGroup
    for arrival in asked {
      let reported = consumeReport(of: arrival)
      if !reported || !inGroup || !arrival.hadProgram {
        pass(arrival.signal)
      } else if arrival.isLost {
        repeatStop()
      }
    }
    // The kernel merges equal pending signals: the witness may have read more of them than the
    // wrapper.
    let open = Set(undecided.map(\.signal))
    seen = seen.filter { open.contains($0.key) }
    if asked.contains(where: { $0.signal == SIGCONT }) {
      // In the background the program may have stopped again at once. A check now could come before
      // it was continued.
      timers.after(Self.deliveryDelay) { [unowned self] in stops.follow() }
    }
    asked = []
    if !undecided.isEmpty {
      question = timers.after(Self.deliveryDelay) { [unowned self] in ask() }
    }
  }

  /// Repeats the terminal's Ctrl-Z, which the wrapper has received before the witness.
  private func repeatStop() {
    if program.isAsleep {
      stopped = wrapperGroup
    } else {
      program.signal(SIGTSTP, group: wrapperGroup)
    }
  }

  private func consumeReport(of arrival: Arrival) -> Bool {
    var times = (seen[arrival.signal] ?? []).filter { arrival.at - $0 < Self.staleAfter }
    defer { seen[arrival.signal] = times }
    if times.isEmpty { return false }
    times.removeFirst()
    return true
  }

  private func pass(_ signal: Int32) {
    if program.hasProcess, !program.isAsleep { return program.signal(signal) }
    // It isn't woken for an ignored signal, for the reason given in `PassedSignals.pass`.
    if program.hasProcess, signal != SIGCONT, program.ignores(signal) { return }
    waiting.append(signal)
  }

  // MARK: the program's states

  /// Sends the signals that waited, because the program runs.
  func programRuns() {
    guard program.hasProcess else { return }
    if let foregroundTimer { timers.cancel(foregroundTimer) }
    foregroundTimer = nil
    if joined != nil {
      joined = nil
      program.putWitness(into: wrapperGroup)
    }
    program.reportStops(true)
    let due = waiting
    waiting = []
    for signal in due { program.signal(signal) }
    if let stopped {
      self.stopped = nil
      program.signal(SIGTSTP, group: stopped)
    }
    stops.follow()
  }

  func programFallsAsleep() {
    program.reportStops(false)
    pollForeground(isFirst: true)
  }

  /// A program in the foreground is woken by its terminal's signals: the witness joins its group. A
  /// program in the background is woken when it comes to the foreground.
  private func pollForeground(isFirst: Bool) {
    foregroundTimer = nil
    guard let foreground = program.foregroundGroup else { return }
    // A program that sleeps doesn't change its groups.
    if isFirst || foreground != otherForeground, program.groups.contains(foreground) {
      if !isFirst { return program.wake("its terminal, which is in its foreground again") }
      guard foreground != wrapperGroup else { return }
      joined = foreground
      return program.putWitness(into: foreground)
    }
    otherForeground = foreground
    foregroundTimer = timers.after(Self.foregroundPollInterval) { [unowned self] in
      pollForeground(isFirst: false)
    }
  }
}
