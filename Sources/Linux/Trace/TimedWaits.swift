import CLinux
import Synchronization

/// Records the waits with a timeout of a sleeping worker's threads: their beginnings and ends.
///
/// Every stop interrupts a thread's call, and the kernel restarts it when the thread continues.
/// Some calls have or keep an absolute end. Others start again with their whole time, or with the
/// time that was left at the interruption; in a worker that sleeps often enough they would never
/// end. So this object records when such a call began, and `TraceSession.correctTimeouts` reduces
/// its time when the worker is woken.
///
/// Each worker has one instance for all its sleeps: `willRest`, `didRest`, `willWake`, `didWake`.
/// Its data survives the daemon as `kept` in the worker's record. Without that, or if a call isn't
/// recorded, the time since a thread last ran counts, which is at least a part of the time asleep.
public final class TimedWaits: Sendable {
  private struct Wait {
    var call: WaitingCall
    /// The moment in nanoseconds of CLOCK_MONOTONIC.
    var began: Int64
    /// True if the timeout began at `began`; false if the thread only came to rest then.
    var isExact = false
    var whole: Duration?
    var end: WaitingCall.Limit?
    /// True if the program has given an absolute end, not a duration.
    var isAbsolute = false
  }

  private struct Seen {
    var pid: Int32
    var call: WaitingCall
    var limit: WaitingCall.Limit?
    var run: ThreadRun?
  }

  private struct State {
    /// The moment at which the worker came to rest; nil while it runs.
    var restsSince: Int64?
    var waits: [Int32: Wait] = [:]
    /// The calls that were seen before the worker came to rest.
    var seen: [Int32: Seen] = [:]
    /// The moment at which a thread without a record last ran.
    var lastRan: [Int32: Int64] = [:]
    /// The moment of the last correction of a thread's timeout, since it came to rest. If waking
    /// fails after that, the passed time must not be subtracted a second time.
    var corrected: [Int32: Int64] = [:]

    func span(from start: Int64?, of thread: Int32, to now: Int64) -> Int64? {
      start.map { max(0, now - max($0, corrected[thread] ?? $0)) }
    }
  }

  private let state = Mutex(State())
  /// The processes that were stopped before the worker was.
  let stoppedBefore = Mutex<Set<ProcessIdentity>>([])

  public init() {}

  // MARK: falling asleep

  /// Records for each thread the call in which it waits, and since when. Call it before the threads
  /// are stopped, because a stop makes them run for a moment. It needs the right to trace.
  public func willRest(_ tree: ProcessTree) {
    let seen = Self.readWaits(of: tree)
    state.withLock { ($0.seen, $0.lastRan, $0.restsSince) = (seen, [:], nil) }
    recordStopped(in: tree)
  }

  private static func readWaits(of tree: ProcessTree) -> [Int32: Seen] {
    var seen: [Int32: Seen] = [:]
    for pid in tree.pids {
      let reader = WaitReader(pid: pid)
      for thread in (try? threads(of: pid)) ?? [] {  // A process that has ended has no threads.
        // Most threads wait without a timeout. For them the scheduler's data isn't read.
        guard let first = WaitingCall.read(thread: thread, of: pid) else { continue }
        let limit = reader.limit(of: first)
        if limit == nil, !first.isRestart { continue }
        let run = ThreadRun.read(thread: thread, of: pid)
        guard let call = WaitingCall.read(thread: thread, of: pid), call == first else { continue }
        seen[thread] = Seen(pid: pid, call: call, limit: limit, run: run)
      }
    }
    return seen
  }

  /// Records that the worker has come to rest, and the recorded waits that it still has.
  public func didRest(_ tree: ProcessTree) {
    let now = Clocks.monotonic
    var clocks = ProcessorClocks()
    let (seen, earlier) = state.withLock { ($0.seen, $0.waits) }
    var waits: [Int32: Wait] = [:]
    for (thread, before) in seen {
      guard let call = before.call.current(thread, of: before.pid), call == before.call else {
        continue
      }
      var wait = Wait(call: call, began: now, whole: nil, end: nil)
      if let began = Self.began(before, thread: thread, now: now, &clocks) {
        wait.began = began
        wait.isExact = true
      }
      complete(&wait, before: before, now: now, earlier: earlier[thread])
      waits[thread] = wait
    }
    state.withLock {
      $0.restsSince = now
      $0.waits = waits
      $0.seen = [:]
      $0.corrected = [:]
    }
  }

  /// Returns a thread that began to wait too late to be recorded: it was working a moment ago. None
  /// is found where a stop hides calls (arm64).
  public func unrecordedThread(in tree: ProcessTree) -> Int32? {
    let recorded = state.withLock { $0.waits }
    return Self.readWaits(of: tree).first { $1.limit != nil && recorded[$0] == nil }?.key
  }

  /// Returns the moment at which the thread began to wait; nil if that can't be verified. It has
  /// waited all the time since then if only the stop made it begin to wait once more.
  private static func began(
    _ before: Seen, thread: Int32, now: Int64, _ clocks: inout ProcessorClocks
  ) -> Int64? {
    guard let run = before.run, run.isWaiting,
      let after = ThreadRun.read(thread: thread, of: before.pid),
      after.waits == run.waits + 1
    else { return nil }
    let onSame = run.processor == after.processor ? now - (after.lastRan - run.lastRan) : nil
    return (clocks.monotonic(run.lastRan, of: run.processor) ?? onSame).map { min($0, now) }
  }

  /// Completes the end of the wait and its whole duration.
  private func complete(_ wait: inout Wait, before: Seen, now: Int64, earlier: Wait?) {
    switch before.limit {
    case .relative(let span):
      wait.whole = .nanoseconds(span)
      let left =
        wait.call.again == CLINUX_AGAIN_FROM_REMAINDER
        ? WaitReader(pid: before.pid).limit(of: wait.call) : nil
      if case .relative(let left) = left, left < span {
        // The kernel has written the time that was left when the thread came to rest.
        wait.end = .monotonic(now + left)
      } else {
        wait.end = .monotonic(wait.began + span)
      }
    case .monotonic(let end):
      wait.isAbsolute = true
      wait.end = before.limit
      if wait.isExact { wait.whole = .nanoseconds(end - wait.began) }
    case .realtime(let end):
      wait.isAbsolute = true
      wait.end = before.limit
      if wait.isExact { wait.whole = .nanoseconds(end - Clocks.realtime + now - wait.began) }
    case nil: break
    }
    guard let earlier, wait.call.isSame(as: earlier.call) else { return }
    // This is the same wait as in the last sleep, and was shortened meanwhile. Or it is an equal
    // one, for which a longer duration does no harm. For a call that the kernel restarts by itself,
    // only the first time shows the end.
    if wait.whole == nil || earlier.whole ?? .zero > wait.whole ?? .zero {
      wait.whole = earlier.whole
    }
    if wait.call.isRestart { wait.end = earlier.end }
  }

  /// The moments at which the waits would end by themselves. A call with an absolute end whose
  /// beginning is known is listed twice: the program may have made it again many times, so that its
  /// duration isn't the time that was requested at first.
  public var dueTimes: [DueTime] {
    let (now, realtime) = (Clocks.monotonic, Clocks.realtime)
    return state.withLock { state in
      state.waits.values.flatMap { wait -> [DueTime] in
        let left: Int64
        switch wait.end {
        case .monotonic(let end): left = end - now
        case .realtime(let end): left = end - realtime
        case .relative, nil: return []
        }
        let time = DueTime(
          source: .timeout, remaining: .nanoseconds(max(0, left)), whole: wait.whole)
        guard wait.isAbsolute, wait.whole != nil else { return [time] }
        return [time, DueTime(source: .timeout, remaining: time.remaining, whole: nil)]
      }
    }
  }

  // MARK: waking

  /// Records when threads without a recorded wait last ran. Call it before threads are seized to be
  /// woken, because seizing makes them run.
  public func willWake(_ tree: ProcessTree) {
    let (restsSince, waits) = state.withLock { ($0.restsSince, $0.waits) }
    let recorded = restsSince == nil ? [] : Set(waits.keys)
    var clocks = ProcessorClocks()
    var lastRan: [Int32: Int64] = [:]
    for pid in tree.pids {
      // A process that has ended has no threads.
      for thread in (try? threads(of: pid)) ?? [] where !recorded.contains(thread) {
        if let restsSince {
          lastRan[thread] = restsSince
          continue
        }
        guard WaitingCall.mayBeginAgain(thread: thread, of: pid),
          let run = ThreadRun.read(thread: thread, of: pid)
        else { continue }
        lastRan[thread] = clocks.monotonic(run.lastRan, of: run.processor)
      }
    }
    state.withLock { $0.lastRan = lastRan }
  }

  /// Returns the time in ns for which a thread's timeout has run; nil if it isn't known.
  func waited(_ thread: Int32, since now: Int64) -> Int64? {
    state.withLock { state in
      let began =
        state.restsSince == nil
        ? state.lastRan[thread] : state.waits[thread]?.began ?? state.lastRan[thread]
      return state.span(from: began, of: thread, to: now)
    }
  }

  /// Returns the time in ns for which the thread has been at rest; nil if it isn't known.
  func rested(_ thread: Int32, since now: Int64) -> Int64? {
    state.withLock { state in
      state.span(from: state.restsSince ?? state.lastRan[thread], of: thread, to: now)
    }
  }

  /// Records that a thread's timeout was corrected at `now`. A changed call is in `call`.
  func didCorrect(_ thread: Int32, now: Int64, call: clinux_call?) {
    state.withLock {
      $0.corrected[thread] = now
      if let call { $0.waits[thread]?.call = WaitingCall(call) }
    }
  }

  /// Records that the worker runs.
  public func didWake() {
    state.withLock {
      $0.restsSince = nil
      $0.lastRan = [:]
      $0.corrected = [:]
    }
  }

  /// Records that the worker is at rest again after a moment in which it may have done anything.
  public func didRestAgain() {
    let now = Clocks.monotonic
    state.withLock {
      $0.restsSince = now
      for thread in $0.waits.keys {
        $0.waits[thread]?.began = now
        $0.waits[thread]?.isExact = false
      }
      $0.corrected = [:]
    }
  }

  // MARK: data for the next daemon

  /// Data for a later daemon, in nanoseconds of CLOCK_MONOTONIC.
  public struct Kept: Hashable, Sendable {
    public var restsSince: Int64
    /// The beginnings of waits by thread ID. The waits of other threads count from `restsSince`.
    public var began: [Int32: Int64]

    public init(restsSince: Int64, began: [Int32: Int64] = [:]) {
      self.restsSince = restsSince
      self.began = began
    }
  }

  /// The data for a later daemon; nil while the worker runs.
  public var kept: Kept? {
    state.withLock { state in
      state.restsSince.map { since in
        let exact = state.waits.filter {
          $0.value.isExact && Self.countsFromBeginning($0.value.call)
        }
        return Kept(restsSince: since, began: exact.mapValues(\.began))
      }
    }
  }

  private static func countsFromBeginning(_ call: WaitingCall) -> Bool {
    call.again != CLINUX_AGAIN_AS_IT_IS && call.again != CLINUX_AGAIN_FROM_REMAINDER
  }

  /// Continues with the data of an earlier daemon.
  public convenience init(_ kept: Kept) {
    self.init()
    state.withLock {
      $0.restsSince = kept.restsSince
      for (thread, began) in kept.began {
        $0.waits[thread] = Wait(
          call: WaitingCall(number: -1, arguments: []), began: began, isExact: true)
      }
    }
  }
}
