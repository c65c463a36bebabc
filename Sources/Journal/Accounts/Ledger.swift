import Lifecycle
import Policy

/// Keeps the tallies of all workers of an engine, from the engine's events and directives.
public struct Ledger: Sendable {
  /// The tallies since the beginning or the last `close`, by worker. `addElapsedTime` adds the time
  /// since the last event.
  public private(set) var tallies: [WorkerID: WorkerTally] = [:]
  private var open: [WorkerID: Account] = [:]

  /// A worker's state since `at`.
  private struct Account: Sendable {
    var state: WorkerState
    var footprint: ByteCount
    /// How much of the footprint is out of RAM.
    var swapped = ByteCount.zero
    /// Whether the run was trimmed. Otherwise the kernel has swapped by itself.
    var isTrimmed = false
    var at: Instant
    /// The state in which the worker slept before it began to resume.
    var sleptIn: WorkerState?
    /// The footprint right before the hibernation, while the worker is hibernated. nil: it isn't
    /// known, and nothing counts as saved.
    var awakeFootprint: ByteCount?
  }

  public init() {}

  /// Begins to count for another engine. The time between the two engines isn't counted, because
  /// its events aren't known.
  public mutating func begin(_ engine: Engine, at now: Instant) {
    open = [:]
    for worker in engine.workerIDs {
      open[worker] = Account(
        state: engine.state(of: worker) ?? .terminated, footprint: engine.footprint(of: worker),
        swapped: engine.swapped(of: worker),
        isTrimmed: engine.snapshot(of: worker, at: now)?.trim?.last != nil, at: now)
    }
  }

  /// Counts an event and its directives.
  ///
  /// - Parameter engine: the engine after the event.
  public mutating func record(
    _ event: Event, directives: [Directive], engine: Engine, at now: Instant
  ) {
    count(event)
    for directive in directives { count(directive, at: now) }
    guard let worker = event.subject else { return }
    let footprint = engine.footprint(of: worker)
    guard let account = open[worker] else {
      if let state = engine.state(of: worker) {
        open[worker] = Account(state: state, footprint: footprint, at: now)
      }
      return
    }
    if engine.state(of: worker) == nil {
      addElapsedTime(worker, at: now)
      open[worker] = nil
    } else if account.footprint != footprint || account.swapped != engine.swapped(of: worker) {
      addElapsedTime(worker, at: now)
      open[worker]?.footprint = footprint
      open[worker]?.swapped = engine.swapped(of: worker)
      let peak = max(tallies[worker]?.peakFootprint ?? 0, footprint.bytes)
      tallies[worker, default: WorkerTally()].peakFootprint = peak
    }
  }

  /// Returns the tallies until now, and starts again with none.
  public mutating func close(at now: Instant) -> [WorkerID: WorkerTally] {
    addElapsedTime(at: now)
    defer { tallies = [:] }
    return tallies
  }

  /// Adds the time that has passed to the tallies.
  public mutating func addElapsedTime(at now: Instant) {
    for worker in open.keys { addElapsedTime(worker, at: now) }
  }

  /// Returns false if the engine has removed the worker.
  public func has(_ worker: WorkerID) -> Bool { open[worker] != nil }

  /// The time that the tallies cover: the longest of all workers.
  public var span: Duration {
    let nanoseconds = tallies.values.map { $0.nanoseconds.values.reduce(0, &+) }.max() ?? 0
    return .nanoseconds(nanoseconds)
  }

  /// Adds the time that has passed to one worker's tally.
  public mutating func addElapsedTime(_ worker: WorkerID, at now: Instant) {
    guard let account = open[worker], now > account.at else { return }
    open[worker]?.at = now
    let span = (now - account.at).wholeNanoseconds
    var tally = tallies[worker] ?? WorkerTally()
    tally.nanoseconds[account.state.rawValue, default: 0] &+= span
    if account.state.isAlive {
      let resident = max(.zero, account.footprint - account.swapped)
      tally.byteSeconds += Double(resident.bytes) * Double(span) / 1e9
      tally.peakFootprint = max(tally.peakFootprint, account.footprint.bytes)
    }
    if account.state == .hibernated, let awake = account.awakeFootprint {
      let saved = max(0, (awake - account.footprint).bytes)
      tally.savedByteSeconds += Double(saved) * Double(span) / 1e9
    } else if account.isTrimmed {
      let swapped = min(account.swapped, account.footprint)
      tally.savedByteSeconds += Double(swapped.bytes) * Double(span) / 1e9
    }
    tallies[worker] = tally
  }

  private mutating func count(_ event: Event) {
    guard let worker = event.subject else { return }
    switch event {
    case .launchFailed: count(worker) { $0.failedLaunches += 1 }
    case .shedFinished(_, let before, let after):
      count(worker) { $0.freed &+= max(0, (before - after).bytes) }
    case .trimmed(_, let result):
      open[worker]?.isTrimmed = true
      count(worker) {
        $0.trims += 1
        $0.trimmed &+= result.freed.bytes
      }
    case .purged(_, let freed): count(worker) { $0.freed &+= freed.bytes }
    case .hibernated(_, let result):
      open[worker]?.awakeFootprint = result.footprintBefore
      count(worker) {
        $0.freed &+= max(0, (result.footprintBefore - result.footprintAfter).bytes)
      }
    case .resumed(_, let took) where open[worker]?.sleptIn == .hibernated:
      let time = took.wholeNanoseconds
      count(worker) {
        $0.resumeNanoseconds &+= time
        $0.maxResumeNanoseconds = max($0.maxResumeNanoseconds, time)
        $0.resumeTimes.add(nanoseconds: time)
      }
    default: break
    }
  }

  private mutating func count(_ directive: Directive, at now: Instant) {
    switch directive {
    case .launch(let worker): count(worker) { $0.launches += 1 }
    case .shed(let worker, .memoryWarning, _): count(worker) { $0.warnings += 1 }
    case .leakSuspected(let worker, _): count(worker) { $0.leakSuspicions += 1 }
    case .transition(let transition): count(transition, at: now)
    default: break
    }
  }

  private mutating func count(_ transition: Transition, at now: Instant) {
    let worker = transition.worker
    if open[worker] == nil {
      open[worker] = Account(state: transition.from, footprint: .zero, at: now)
    }
    addElapsedTime(worker, at: now)
    let sleptIn = open[worker]?.sleptIn
    let footprint = open[worker]?.footprint ?? .zero
    open[worker]?.state = transition.to
    if transition.to != .hibernated {
      open[worker]?.awakeFootprint = nil
    } else if open[worker]?.awakeFootprint == nil {
      // This worker belongs to a wrapper. No event has its size before it was hibernated.
      open[worker]?.awakeFootprint = footprint
    }
    if transition.to == .terminated { open[worker]?.isTrimmed = false }
    open[worker]?.sleptIn = transition.to == .resuming ? transition.from : nil
    count(worker) { $0.count(transition, sleptIn: sleptIn, footprint: footprint) }
  }

  private mutating func count(_ worker: WorkerID, _ change: (inout WorkerTally) -> Void) {
    change(&tallies[worker, default: WorkerTally()])
  }
}

extension WorkerTally {
  fileprivate mutating func count(
    _ transition: Transition, sleptIn: WorkerState?, footprint: ByteCount
  ) {
    if transition.from == .launching, transition.to == .launching || transition.to == .terminating,
      case .watchdog = transition.cause
    {
      launchTimeouts += 1
    }
    switch (transition.from, transition.to) {
    case (.suspending, .suspended): suspensions += 1
    case (.hibernating, .hibernated): hibernations += 1
    case (.resuming, .foreground), (.resuming, .background):
      if sleptIn == .hibernated { resumes += 1 } else { wakes += 1 }
    case (_, .terminated): countEnd(transition.cause, footprint)
    case (let from, let to):
      if case .led = transition.cause { countLed(from, to) }
    }
  }

  /// Counts a change of a worker that a wrapper manages. A wrapper reports the outcomes of its
  /// changes, not their beginnings.
  private mutating func countLed(_ from: WorkerState, _ to: WorkerState) {
    switch (from.runs, to) {
    case (true, .suspended): suspensions += 1
    case (_, .hibernated): hibernations += 1
    case (false, _) where to.runs:
      if from == .hibernated { resumes += 1 } else { wakes += 1 }
    default: break
    }
  }

  private mutating func countEnd(_ cause: Cause, _ footprint: ByteCount) {
    switch cause {
    case .pressure:
      memoryTerminations += 1
      freed &+= footprint.bytes
    case .watchdog: watchdogTerminations += 1
    case .requested: stops += 1
    case .exited(.exited(0)): exits += 1
    case .exited: crashes += 1
    default: break
    }
  }
}
